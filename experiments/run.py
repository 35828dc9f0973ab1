"""Run experiments, some or all, in one process or several.

``--smoke`` runs small versions and writes to a folder of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from experiments import data
from experiments.index import write_index
from experiments.registry import EXPERIMENTS
from experiments.report import RESULTS, writing_to

_LONGEST_FIRST = ("E6", "E3b", "E1")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is named; 1 when something failed, 2 when it cannot be run."""
    options = _options(arguments)
    if options.list:
        for name, experiment in EXPERIMENTS.items():
            _say(f"{name:4} {experiment.source}{'' if experiment.present else ' (not here)'}")
        return 0
    if options.data:
        os.environ["TOPSECRET_DATA"] = str(options.data)
    wanted = {name.lower(): name for name in EXPERIMENTS}
    unknown = [name for name in options.names if name.lower() not in wanted]
    if unknown:
        _say(f"unknown experiment {unknown[0]}; there are {', '.join(EXPERIMENTS)}")
        return 2
    names = [wanted[name.lower()] for name in options.names] or [*EXPERIMENTS]
    folder = Path(tempfile.mkdtemp(prefix="topsecret-smoke-")) if options.smoke else options.results
    names = [name for name in names if _runnable(name)]
    shared = [name for name in names if not EXPERIMENTS[name].alone]
    shared.sort(key=lambda n: _LONGEST_FIRST.index(n) if n in _LONGEST_FIRST else len(n) + 9)
    settings = (options.smoke, options.seed, options.repetitions, folder)
    failed = 0
    if options.processes > 1 and len(shared) > 1:
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(options.processes, mp_context=spawn) as pool:
            failed += sum(pool.map(_run, shared, [settings] * len(shared)))
    else:
        failed += sum(_run(name, settings) for name in shared)
    failed += sum(_run(name, settings) for name in names if EXPERIMENTS[name].alone)
    with writing_to(folder):
        write_index(folder)
    _say(f"results in {folder}" if folder != RESULTS else "results in docs/results")
    return 1 if failed or not names else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="E1", help="which experiments; all if none")
    parser.add_argument("--list", action="store_true", help="say which there are")
    parser.add_argument("--smoke", action="store_true", help="small versions, results elsewhere")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=None)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--data", type=Path, default=None, help="the folder of the datasets")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


def _runnable(name: str) -> bool:
    experiment = EXPERIMENTS[name]
    if not experiment.present:
        _say(f"{name}: skipped, its module is not in this checkout")
        return False
    if experiment.needs_data and not data.available():
        _say(f"{name}: skipped, no data in {data.folder()}; name the folder with --data")
        return False
    return True


def _run(name: str, settings: tuple[bool, int, int | None, Path]) -> int:
    smoke, seed, repetitions, folder = settings
    start = time.perf_counter()
    try:
        with writing_to(folder):
            line = EXPERIMENTS[name].load()(
                smoke=smoke, seed=seed, repetitions=repetitions, progress=_told()
            )
    except Exception as error:
        _say(f"{name}: failed after {time.perf_counter() - start:.0f} s: {error!r}")
        return 1
    _say(f"{name}: {time.perf_counter() - start:.0f} s. {line}")
    return 0


def _told():  # type: ignore[no-untyped-def]
    """Progress as a line every ten seconds, on standard error."""
    last = [time.perf_counter()]

    def told(what: str, done: int, total: int) -> None:
        if time.perf_counter() - last[0] > 10:
            last[0] = time.perf_counter()
            sys.stderr.write(f"  {what} ({done} of {total})\n")

    return told


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
