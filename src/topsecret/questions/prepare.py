"""A question to a source, checked and calibrated: everything but the money and the rows.

Everything that can be wrong with the parameters is found here, before the data are touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from topsecret.errors import InvalidParameter
from topsecret.exact.rounding import Number, ball, down, up
from topsecret.questions.privacy_unit import PrivacyUnit
from topsecret.results.release import Release
from topsecret.sources import CountQuery, Expression, Source, domain_of
from topsecret.sources.memory import memory

if TYPE_CHECKING:
    from topsecret.accounting import Loss
    from topsecret.calibration import Prepared, Question
    from topsecret.calibration.counts import PreparedCounts
    from topsecret.counts.histogram import Histogram
    from topsecret.ledger import Flexible, Metered
    from topsecret.sources.session import Engine


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with everything that answers it. All public but what the source holds."""

    opened: Source
    query: CountQuery
    unit: PrivacyUnit
    prepared: Prepared
    counts: PreparedCounts | None
    counts_share: float | None
    budget: tuple[float, float]
    """What the answer may cost, (ε, δ)."""

    @property
    def loss(self) -> Loss:
        """What the answer costs, counts included."""
        loss = self.prepared.mechanism.loss
        return loss if self.counts is None else loss + self.counts.loss

    def draw(self, histogram: Histogram) -> tuple[Release, int]:
        """The answer, and how many symbols it took."""
        prepared, (_, delta) = self.prepared, self.budget
        selection = prepared.mechanism.select(histogram)
        asked_for = prepared.question.k
        parameters = dict(prepared.parameters)
        noisy: tuple[int, ...] | None = None
        if self.counts is not None:
            noisy = self.counts.release(histogram, selection.items)
            parameters |= {
                "counts_share": self.counts_share,
                "counts_sigma": up(ball(self.counts.variance).sqrt()),
            }
        release = Release(
            items=selection.items,
            complete=selection.complete
            and (asked_for == "auto" or len(selection.items) == asked_for),
            ordered=selection.ordered,
            k=asked_for,
            epsilon=self.loss.epsilon(delta),
            delta=delta,
            mechanism=prepared.name,
            parameters=parameters,
            bound=self.loss.bound_used(delta),
            threshold=prepared.named_when,
            unit=self.unit,
            source=self.opened.name,
            item=_item_name(self.query.item),
            version=_version(),
            time=datetime.now(UTC),
            chosen=selection.chosen,
            told=prepared.told(selection),
            counts=noisy,
            half_width=None if self.counts is None else self.counts.half_width,
            where=" and ".join(map(str, self.query.where)),
            domain="" if self.query.domain is None else self.query.domain.described,
        )
        return release, len(selection.outcome)


def ask(
    source: Any,
    *,
    budget: Metered | Flexible | None = None,
    item: str | Sequence[str] | Expression,
    person: str,
    k: int | Literal["auto"],
    epsilon: Number | None,
    delta: Number,
    k_bar: int | None,
    mechanism: str,
    table: str | tuple[str, ...] | None,
    where: Any,
    max_items: int | None,
    domain: Any,
    counts_share: float | None,
    salt: bytes = b"",
) -> Asked:
    """Check every parameter, open the source and calibrate, before any row is read."""
    from topsecret.sources.open_source import open_source

    unit = PrivacyUnit(person=person, max_items=max_items)
    named = item if isinstance(item, str | Expression) else tuple(item)
    public = None if domain is None else domain_of(domain)
    query = CountQuery(named, person, 1, where, max_items, public, salt=salt)
    if domain is None:
        # The numbers are checked before the source is opened.
        _question(budget, k, epsilon, delta, k_bar, max_items, None)
    memory()  # a wrong one must not be found when the answer is paid for
    opened = open_source(source, table)
    size = None if public is None else _domain_size(opened, query)
    question = _question(budget, k, epsilon, delta, k_bar, max_items, size)
    prepared, noisy = prepared_for(budget, question, mechanism, counts_share)
    query = replace(query, rows=prepared.rows)
    return Asked(
        opened, query, unit, prepared, noisy, counts_share, (question.epsilon, question.delta)
    )


@contextmanager
def histograms(opened: Source, queries: Sequence[CountQuery]) -> Iterator[list[Histogram]]:
    """The counts of each question, of one moment of the data where the source can do that."""
    from topsecret.counts.histogram import Histogram

    if queries[0].domain is not None:
        from topsecret.counts.engine_table import GroupedTable
        from topsecret.sources.domains.counted_domain import counted_domains

        with counted_domains(_engine(opened), queries) as domains:
            yield [Histogram(GroupedTable(domain)) for domain in domains]
        return
    if len(queries) == 1:
        rows = [opened.leading_counts(queries[0])]
    else:
        from topsecret.sources.session import leading_counts_of

        rows = leading_counts_of(_engine(opened), queries)
    yield [
        Histogram.leading(found, limit=query.rows)
        for found, query in zip(rows, queries, strict=True)
    ]


def _engine(opened: Source) -> Engine:
    from topsecret.sources.session import Engine

    if isinstance(opened, Engine):
        return opened
    raise InvalidParameter(
        f"{opened.name} counts leading items only; a public domain or groups need a file, "
        "a database or a data frame"
    )


def _domain_size(opened: Source, query: CountQuery) -> int:
    from topsecret.sources.domains.counted_domain import domain_size

    return domain_size(_engine(opened), query)


def _item_name(item: str | tuple[str, ...] | Expression) -> str:
    if isinstance(item, Expression):
        return item.text
    return item if isinstance(item, str) else ", ".join(item)


def _question(
    budget: Metered | Flexible | None,
    k: int | Literal["auto"],
    epsilon: Number | None,
    delta: Number,
    k_bar: int | None,
    max_items: int | None,
    size: int | None,
) -> Question:
    """The public numbers, checked; those of a metered budget are its owner's."""
    from topsecret.calibration import Question

    if budget is not None and budget.kind == "metered":
        if epsilon is not None:
            raise InvalidParameter(
                f"epsilon={epsilon} must be left out: the data set's budget is metered, with "
                f"{float(budget.price):.4g} per item"
            )
        epsilon, delta = down(budget.epsilon), down(budget.delta)
    if epsilon is None:
        raise InvalidParameter("epsilon is missing; 1 is a common choice")
    return Question.of(
        k=k, epsilon=epsilon, delta=delta, k_bar=k_bar, max_items=max_items, domain_size=size
    )


def prepared_for(
    budget: Metered | Flexible | None,
    question: Question,
    mechanism: str,
    counts_share: float | None,
) -> tuple[Prepared, PreparedCounts | None]:
    """The mechanism, calibrated to (ε, δ) or at the price that a metered budget fixed."""
    from topsecret.calibration import prepare, prepare_at

    if budget is not None and budget.kind == "metered":
        if counts_share is not None:
            raise InvalidParameter("counts=True needs a budget that is not metered; leave it out")
        name = "limited-domain" if mechanism == "auto" else mechanism
        return prepare_at(name, question, down(budget.price), down(budget.query_delta)), None
    if mechanism == "auto":
        from topsecret.planning.rule import recommend

        mechanism = recommend(question).name
    if counts_share is None:
        return prepare(mechanism, question), None
    from topsecret.calibration.counts import with_counts

    return with_counts(mechanism, question, counts_share)


def _version() -> str:
    from topsecret import __version__

    return __version__
