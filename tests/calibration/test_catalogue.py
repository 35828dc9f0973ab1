"""Every mechanism of the calibration keeps to its budget, and says when it cannot answer."""

import pytest

from topsecret.calibration import NAMES, PUBLIC_DOMAIN, Question, applicable, prepare
from topsecret.counts.histogram import Histogram
from topsecret.errors import DomainRequired, InvalidParameter
from topsecret.mechanisms import Mechanism
from topsecret.mechanisms.selection import Selection

QUESTIONS = [
    Question.of(k=3, epsilon=1.0, max_items=2, domain_size=50),
    Question.of(k=1, epsilon=0.1, delta=1e-9, max_items=1, domain_size=10**12),
    Question.of(k=2, epsilon=6.0, delta=0.01, k_bar=5, max_items=5, domain_size=2),
    Question.of(k="auto", epsilon=0.7, delta=1e-7, domain_size=50),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_no_mechanism_spends_more_than_the_budget(question: Question) -> None:
    names = applicable(question)
    assert names == (("stable",) if question.k == "auto" else tuple(set_without_stable()))
    for name in names:
        prepared = prepare(name, question)
        spent = prepared.mechanism.loss.epsilon(question.delta)
        assert 0.9 * question.epsilon < spent <= question.epsilon, name
        assert isinstance(prepared.mechanism, Mechanism)
        assert prepared.scale > 0 or question.domain_size == question.k


def set_without_stable() -> list[str]:
    """All that answer a number of items from a public domain."""
    return [name for name in NAMES if name not in {"stable", "tested-or-weighted"}]


def test_a_choice_is_for_an_unknown_domain_and_spends_its_budget() -> None:
    prepared = prepare("tested-or-weighted", Question.of(k=4, epsilon=1.0))
    assert 0.99 < prepared.mechanism.loss.epsilon(1e-6) <= 1
    with pytest.raises(InvalidParameter, match="is for an unknown domain, and one was given"):
        prepare("tested-or-weighted", Question.of(k=4, epsilon=1.0, domain_size=9))


def test_what_is_applicable_depends_on_public_conditions() -> None:
    unknown = set(applicable(Question.of(k=3, epsilon=1)))
    assert unknown == set(NAMES) - PUBLIC_DOMAIN - {"stable", "limited-domain-laplace"}
    assert "limited-domain-laplace" in applicable(Question.of(k=3, epsilon=1, max_items=60))
    assert "limited-domain-laplace" not in applicable(Question.of(k=3, epsilon=1, max_items=61))
    assert "tested" not in applicable(Question.of(k=3, epsilon=11))
    assert "tested" not in applicable(Question.of(k=3, epsilon=1, k_bar=3))


@pytest.mark.parametrize(
    ("name", "numbers", "message"),
    [
        (
            "limited-domain-laplace",
            {"k": 3, "max_items": 61},
            "max_items=61 must be at most k_bar=60 for mechanism='limited-domain-laplace'; "
            "raise k_bar or lower max_items",
        ),
        (
            "tested",
            {"k": 3, "epsilon": 20.0},
            "epsilon=20.0 must lie between 0.0001 and 10 with mechanism='tested'; "
            "change epsilon, or use mechanism='limited-domain'",
        ),
        (
            "tested",
            {"k": 3, "max_items": 0},
            "max_items=0 must be at least 1; raise it or leave it out",
        ),
        (
            "gumbel",
            {"k": 9, "domain_size": 8},
            "domain_size=8 must be at least 9; lower k or leave it out",
        ),
    ],
)
def test_a_refusal_says_the_rule_and_the_fix(
    name: str, numbers: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidParameter) as caught:
        prepare(name, Question.of(**({"epsilon": 1.0} | numbers)))  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_a_missing_domain_is_its_own_error() -> None:
    with pytest.raises(DomainRequired):
        prepare("pruned", Question.of(k=3, epsilon=1))


@pytest.mark.parametrize("name", [n for n in set_without_stable() if n != "weighted"])
def test_clear_leaders_are_named_in_words_too(name: str) -> None:
    question = Question.of(k=2, epsilon=2.0, max_items=1, domain_size=9)
    prepared = prepare(name, question)
    counts = {"a": 90_000, "b": 80_000, "c": 1}
    answer = prepared.mechanism.select(Histogram.of(counts, domain=tuple("abcdefghi")))
    assert set(answer.items) == {"a", "b"}
    assert prepared.told(answer).startswith("has all 2 items asked for")
    assert prepared.named_when
    assert prepared.nothing


@pytest.mark.parametrize("branch", ["tested", "weighted"])
def test_an_empty_answer_says_what_to_ask_instead(branch: str) -> None:
    nothing = Selection((), False, chosen=2, branch=branch)
    for name, k in (("limited-domain", 3), ("tested", 5), ("tested-or-weighted", 5)):
        told = prepare(name, Question.of(k=k, epsilon=1)).told(nothing)
        assert told.startswith("is empty. ")
        assert "ask for fewer items, spend more epsilon, or ask for all (k = all)" in told
    told = prepare("limited-domain", Question.of(k=1, epsilon=1)).told(nothing)
    assert "spend more epsilon, or ask for all (k = all)" in told
    assert "fewer" not in told
    named_when = prepare("tested-or-weighted", Question.of(k=5, epsilon=1)).named_when
    assert "so is an empty one, if not even the largest item leads by " in named_when


def test_a_smaller_threshold_comes_with_a_cap() -> None:
    free = prepare("limited-domain", Question.of(k=3, epsilon=1))
    capped = prepare("limited-domain", Question.of(k=3, epsilon=1, max_items=1))
    assert _number(free.named_when, "line, ") > _number(capped.named_when, "line, ")


def _number(text: str, before: str) -> int:
    return int(text.split(before)[1].split()[0].rstrip(".").replace(",", ""))


@pytest.mark.parametrize("name", ["limited-domain", "limited-domain-laplace", "fixed-threshold"])
def test_what_passes_half_of_the_time_and_98_percent(name: str) -> None:
    """By the exact law, about one item: the numbers of the sentence, rounded up to whole people."""
    prepared = prepare(name, Question.of(k=1, epsilon=1, max_items=2))
    if name == "fixed-threshold":
        leads = [(_number(prepared.named_when, "ranked 2 by "), 0.5)]
    else:
        leads = [
            (_number(prepared.named_when, "noisy line, "), 0.5),
            (_number(prepared.named_when, "with a lead of "), 0.98),
        ]
    for lead, chance in leads:
        law = prepared.mechanism.distribution
        assert law(Histogram.of({"a": lead}))[("a",)] >= chance
        assert law(Histogram.of({"a": lead - 1}))[("a",)] < chance
