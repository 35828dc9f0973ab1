"""The plan: what each mechanism would need and give, from public numbers only."""

from __future__ import annotations

import html
import json
import textwrap
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from topsecret.calibration import Prepared, Question, prepare
from topsecret.calibration.question import Scores
from topsecret.exact.rounding import exact, rounded_up, up
from topsecret.planning.leads import LIKELY, Leads, needed
from topsecret.planning.rule import Recommendation
from topsecret.planning.simulation import Recall
from topsecret.results.export import Public

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 88


@dataclass(frozen=True, slots=True)
class Option:
    """One mechanism at these public numbers."""

    name: str
    """The mechanism's name, as ``top_k`` takes it."""
    answer: str
    """What comes back, in words."""
    nothing: str
    """What NOTHING means, in words."""
    named_when: str
    """The rule by which an item may be named, in words."""
    scale: float
    """The scale of the noise, in people."""
    needed_lead: int | None
    """The lead that the last item of the top k needs to be named with 95% probability."""
    needed_lead_all: int | None
    """The lead that k level items need to be named together with 95% probability."""
    over_rank: int | None
    """The rank that the leads are over; None for the next item after a drop."""
    epsilon: float
    """What is proven, at the plan's delta."""
    bound: str
    """The composition bound that proves epsilon."""
    parameters: dict[str, Public]
    """The mechanism's public parameters."""
    lead_for_any: int | None = None
    """The lead of k level items at which an answer is empty with at most 5%; None if not known."""

    @classmethod
    def of(cls, prepared: Prepared, leads: Leads) -> Option:
        """From a calibrated mechanism."""
        delta = prepared.question.delta
        return cls(
            prepared.name,
            prepared.answer,
            prepared.nothing,
            prepared.named_when,
            _scale(prepared),
            _wholes(prepared.question, leads.one),
            _wholes(prepared.question, leads.every),
            prepared.over_rank,
            prepared.mechanism.loss.epsilon(delta),
            prepared.mechanism.loss.bound_used(delta),
            dict(prepared.parameters),
            _wholes(prepared.question, leads.any_answer),
        )


@dataclass(frozen=True, slots=True)
class HeldQuestions:
    """How many picks a budget for many questions holds at one noise scale."""

    scale: int
    """The scale of the noise, in people."""
    picks: int
    """How many picks fit."""
    lists: int | None
    """How many lists of k that is; None when k is "auto"."""


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """What a budget buys before anything is spent. It holds public numbers alone."""

    question: Question
    """What was asked, in numbers."""
    options: tuple[Option, ...]
    """Every mechanism that can answer it."""
    recommendation: Recommendation
    """Which of them is advised, and why."""
    held: tuple[HeldQuestions, ...]
    """How many such questions a budget holds."""
    needed_lead: int | None = None
    """The lead that was asked for, when the plan looked for the smallest epsilon."""
    shape: str = ""
    """The example shape in words."""
    runs: int = 0
    """How many times the example was simulated."""
    recalls: tuple[Recall, ...] = ()
    """What each mechanism found of the example's top k."""
    proposed: str = ""
    """How a bound on one person was found on the example, in words; empty where it was given."""

    @property
    def noun(self) -> str:
        """What leads are of, after their number: people, rows, of price, times the bound."""
        scores = self.question.scores
        if scores is None:
            return "people"
        return "times the bound" if scores.bounds else scores.noun

    @property
    def recommended(self) -> str:
        """The name of the mechanism that ``mechanism="auto"`` would use."""
        return self.recommendation.name

    @property
    def epsilon(self) -> float:
        """The epsilon that the plan is for; the smallest one when a lead was asked for."""
        return self.question.epsilon

    @property
    def title(self) -> str:
        """The question in one line."""
        q = self.question
        words = {"auto": "the items that stand out", "all": "all safe items"}
        what = words[q.k] if isinstance(q.k, str) else f"the top {q.k}"
        without = f"delta = {q.delta:g}" if q.delta else "no delta"
        parts = [f"Plan for {what} at epsilon = {q.epsilon:g}, {without}"]
        if q.k_bar_given:
            parts.append(f"among the {q.k_bar:,} leading items")
        if q.scores is not None:
            parts.append(_ranked_by(q.scores))
        if q.max_items is not None:
            parts.append(f"at most {q.max_items} items per person")
        if q.domain_size is None:
            parts.append("unknown domain")
        else:
            parts.append(f"public domain of {q.domain_size:,} items")
        return ", ".join(parts)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The plan in words: the answer, the recommendation, how to read the leads."""
        found = []
        if self.needed_lead is not None:
            found.append(
                f"The smallest epsilon (two digits) at which an item with {self.needed_lead} "
                f"{self.noun} more than the rest is named with {LIKELY:.0%} probability: "
                f"{self.epsilon:g}."
            )
        if self.proposed:
            found.append(self.proposed)
        best = self[self.recommended]
        found.append(f"Recommended: {self.recommended}; {self.recommendation.why}")
        found.append(f"It answers {best.answer}. An empty place {best.nothing}.")
        if best.lead_for_any is not None:
            k, rank = self.question.k, best.over_rank
            if best.name == "tested-or-weighted":
                found.append("Leads are those that its picks need; its weights need none.")
            found.append(
                f"The answer is empty with at most {1 - LIKELY:.0%} probability when {k} items "
                f"lead rank {rank} by {best.lead_for_any} {self.noun} each, and has all {k} with "
                f"{LIKELY:.0%} when they lead it by {_lead(best.needed_lead_all)}; in between a "
                "shorter list is likely."
            )
        if self.recommended == "tested":
            found.append(GEOMETRIES if self.question.scores is None else MEASURED_GEOMETRIES)
        if self.question.max_items is not None:
            found.append(_cap(self.question.max_items, self.recommended))
        found.append(LEGEND if self.question.scores is None else MEASURED_LEGEND)
        return tuple(found)

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The table: mechanism, noise scale, the two needed leads, over whom, what comes back."""
        return tuple(
            (
                option.name,
                rounded_up(option.scale, 3),
                _lead(option.needed_lead),
                _lead(option.needed_lead_all),
                {None: "the next", 0: "nobody"}.get(option.over_rank, f"rank {option.over_rank}"),
                option.answer,
            )
            for option in self.options
        )

    @property
    def holding(self) -> str:
        """How many picks the budget holds, in words."""
        if not self.held:
            return "Without a delta the epsilons of several questions add up."
        shown = "; ".join(
            f"scale {row.scale}: {_number_of(row.picks, 'pick')}"
            + (f" or {_number_of(row.lists, 'list')} of {self.question.k}" if row.lists else "")
            for row in self.held
        )
        return (
            "As a flexible budget for many questions (added up as zCDP, half of delta for "
            f"failures) it holds, at a noise of {shown}."
            + ("" if self.question.scores is None else " Scales are multiples of the bound.")
        )

    def __getitem__(self, name: str) -> Option:
        for option in self.options:
            if option.name == name:
                return option
        raise KeyError(name)

    def __repr__(self) -> str:
        return f"<{self.title}: {self.recommended}>"

    def __str__(self) -> str:
        lines = [*textwrap.wrap(self.title, WIDTH), ""]
        rows = [HEADINGS, *self.rows]
        widths = [max(len(row[column]) for row in rows) for column in range(5)]
        for name, scale, one, every, over, answer in rows:
            mark = "*" if name == self.recommended else " "
            lines.append(
                f"{mark} {name:<{widths[0]}}  {scale:>{widths[1]}}  {one:>{widths[2]}}  "
                f"{every:>{widths[3]}}  {over:<{widths[4]}}  {answer}"
            )
        for sentence in (*self.sentences, self.holding):
            lines += ["", *textwrap.wrap(sentence, WIDTH)]
        if self.recalls:
            lines += ["", *textwrap.wrap(self.measured, WIDTH), *self.bars()]
        return "\n".join(lines)

    @property
    def measured(self) -> str:
        """What the simulation measured, in words."""
        what = "Share of runs with an answer"
        what = what if isinstance(self.question.k, str) else "Expected recall"
        return f"{what} on an example, {self.shape} ({self.runs} runs):"

    def bars(self, width: int = 40) -> list[str]:
        """The simulated recalls as bars of text."""
        longest = max((len(row.name) for row in self.recalls), default=0)
        return [
            f"  {row.name:<{longest}}  {'█' * round(row.mean * width):<{width}}  "
            f"{row.mean:.3f} ± {2 * row.error:.3f}, {row.empty:.0%} empty, "
            f"{row.shorter:.0%} shorter"
            for row in self.recalls
        ]

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values that JSON can hold."""
        return {
            "question": self.question.to_dict(),
            "recommended": self.recommended,
            "why": self.recommendation.why,
            "needed_lead": self.needed_lead,
            "options": [asdict(option) for option in self.options],
            "held": [asdict(row) for row in self.held],
            "shape": self.shape or None,
            "runs": self.runs,
            "recalls": [asdict(row) for row in self.recalls],
            **({"proposed": self.proposed} if self.proposed else {}),
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """``to_dict`` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def plot(self) -> Figure:
        """The needed leads, and the simulated recalls if there are any, as a matplotlib figure."""
        from topsecret.planning.plot import figure

        return figure(self)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(heading)}</th>" for heading in HEADINGS)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        words = "".join(f"<p>{html.escape(text)}</p>" for text in (*self.sentences, self.holding))
        bars = "".join(
            f"<tr><td>{html.escape(row.name)}</td><td><div style='background:#4c72b0;height:1em;"
            f"width:{round(200 * row.mean)}px'></div></td><td>{row.mean:.3f}</td></tr>"
            for row in self.recalls
        )
        drawn = f"<p>{html.escape(self.measured)}</p><table>{bars}</table>" if bars else ""
        return (
            f"<table><caption>{html.escape(self.title)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{words}{drawn}"
        )


HEADINGS = ("mechanism", "noise", "lead", "of all", "over", "answer")

LEGEND = (
    "Lead: how many people more than the rest the last item of the top k needs to be named with "
    f"{LIKELY:.0%} probability; of all: what k level items need to be named together; over: the "
    "rank that it is measured against, which is the first that can never be named, or k + 1; the "
    "lower down it is, the fewer people it has. The rest are taken as "
    "tied, so that the lead is over all of them: an item that leads that rank alone may still lose "
    "its place to items just behind it. In few datasets the top k are far ahead of rank k + 1, so "
    "leads over different ranks do not compare. "
    "Noise: its scale in people. Over nobody: weighted people, of whom those with few items "
    "count in full; they win where people have few items each, picks where they have many."
)


GEOMETRIES = (
    "Picks cost the same however many items a person has, and win where people have many items. "
    "Where they have few, weighted people (mechanism = weighted) name more. Without "
    "choose = public a noisy look at the data, for a twentieth of the budget, decides which it is "
    "(tested-or-weighted)."
)


MEASURED_LEGEND = (
    "Lead: how far ahead of the rest, in rows, in what is summed, or in multiples of a bound that "
    "is chosen privately, the last item of the top k must be to be named with "
    f"{LIKELY:.0%} probability, after clipping; of all: what k level items need to be named "
    "together; over: the rank that it is measured against, which is the first that can never "
    "be named, or k + 1; the lower down it is, the less it has. The rest "
    "are taken as tied, so that the lead is over all of them. Noise: its scale, in the same. All "
    "of it is proportional to the bound."
)

MEASURED_GEOMETRIES = (
    "Picks pay for a person who adds the whole bound to every item. Where people add to few items, "
    "max_total, a bound on all that one person adds, needs less. With one public bound, and "
    "without choose = public, the data are asked which it is, for a twentieth of the budget "
    "(tested-or-weighted)."
)


def _ranked_by(scores: Scores) -> str:
    what = "rows" if scores.noun == "rows" else f"sum {scores.noun}"
    if scores.bounds:
        return f"by {what}, the bound on one person chosen privately out of {len(scores.bounds)}"
    of_all = f", {scores.total / scores.per_unit:g} in all" if scores.total else ""
    bound = f"{scores.sensitivity / scores.per_unit:g}"
    return f"by {what}, at most {bound} of one person for one item{of_all}"


def _wholes(question: Question, lead: int | None) -> int | None:
    """A lead in rows or in what is summed; as it is where the bound is not known yet."""
    scores = question.scores
    return lead if lead is None or scores is None or scores.bounds else scores.wholes(lead)


def _scale(prepared: Prepared) -> float:
    scores = prepared.question.scores
    if scores is None or scores.bounds:
        return prepared.scale
    return up(exact(prepared.scale) * scores.sensitivity / scores.per_unit)


def _cap(most: int, name: str) -> str:
    """What a cap buys, and what it costs, before anything is spent."""
    if name in ("limited-domain-laplace", "limited-domain"):
        gain = "Its threshold is lower for it"
    elif name in ("weighted", "tested-or-weighted"):
        gain = (
            "Weights have less noise for a cap below 3, and a slightly lower threshold for others"
        )
    else:
        gain = f"{name} gains nothing from it: leave it out"
    return (
        f"The cap drops what a person holds beyond {most} items. {gain}; where people hold more, "
        "the counts fall, and the answer may be worse than without a cap."
    )


def option(name: str, question: Question) -> Option:
    """One mechanism at these public numbers."""
    return Option.of(prepare(name, question), needed(name, question))


def _lead(lead: int | None) -> str:
    return "–" if lead is None else str(lead)


def _number_of(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"
