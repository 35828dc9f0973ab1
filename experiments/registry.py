"""Which experiments there are: what each reproduces and the module that runs it."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Experiment:
    """One table or figure."""

    source: str
    """The paper's table or figure, or the question of ours."""
    module: str
    page: str
    """The name of its files in docs/results."""
    needs_data: bool = False
    alone: bool = False
    """It measures time and must not share the machine with another experiment."""

    @property
    def present(self) -> bool:
        """Whether its module is part of this checkout."""
        return importlib.util.find_spec(f"experiments.{self.module}") is not None

    def load(self) -> Callable[..., str]:
        """Its ``run``: (smoke, seed, repetitions, progress) to one line of verdict."""
        run: Callable[..., str] = importlib.import_module(f"experiments.{self.module}").run
        return run


EXPERIMENTS: dict[str, Experiment] = {
    "E1": Experiment("Zhu & Wang 2022, Table 1", "e1_recall_table", "e1-recall-table", True),
    "E2a": Experiment("Zhu & Wang 2022, Figure 1(a)", "e2a_covid_states", "e2a-covid-states", True),
    "E2b": Experiment("Zhu & Wang 2022, Figure 1(b)", "e2b_clear_drop", "e2b-clear-drop"),
    "E3": Experiment("Zhu & Wang 2022, Table 2, ε", "e3_pate_charges", "e3-pate-charges"),
    "E3b": Experiment("Zhu & Wang 2022, Table 2, quality of the students", "pate", "pate", True),
    "E3c": Experiment("soft answers on multi-label sets", "pate_sets", "pate-sets", True),
    "E4": Experiment(
        "Durfee & Rogers 2019, Figure 1", "e4_composition_ratio", "e4-composition-ratio"
    ),
    "E5": Experiment("Qiao, Su & Zhang 2021, §2", "e5_oneshot_noise", "e5-oneshot-noise"),
    "E5b": Experiment("Qiao, Su & Zhang 2021, §3, ranking", "ranking", "ranking", True),
    "E5c": Experiment("rankings by strength", "strength", "strength", True),
    "E6": Experiment(
        "which mechanism on which data", "e6_utility_frontier", "e6-utility-frontier", True
    ),
    "E7": Experiment("other libraries", "e7_peers", "e7-peers", True, alone=True),
    "E7b": Experiment("other libraries on many datasets", "peer_sets", "e7b-peer-sets", True),
    "E8": Experiment("time and memory against size", "e8_scale", "e8-scale", alone=True),
    "E9": Experiment("speed of selection", "e9_selection_speed", "e9-selection-speed", alone=True),
    "E10": Experiment("sets and lists without a delta", "e10_pure", "e10-pure", True),
    "E11": Experiment("picks or weights", "geometries", "e11-geometries", True),
    "E12": Experiment("lists over time", "over_time", "over-time", True),
    "E12b": Experiment("lists over time at early weeks", "early_weeks", "early-weeks", True),
    "E13": Experiment("the bound on one person", "private_bound", "private-bound", True),
    "E13b": Experiment(
        "picks or bounded sums", "measured_geometries", "e13b-measured-geometries", True
    ),
}
