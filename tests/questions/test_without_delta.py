"""delta=0 as a question: who can answer it, what the receipt says, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from topsecret import top_k
from topsecret.errors import DomainRequired, InvalidParameter
from topsecret.ledger import Flexible, Ledger
from topsecret.questions.question import Question

PLACES = [f"p{place:04}" for place in range(2000)]


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The place of rank r has 400 − 20·r persons, down to 0."""
    rows = [f"u{user},{place}" for r, place in enumerate(PLACES) for user in range(400 - 20 * r)]
    path = tmp_path_factory.mktemp("visits") / "visits.csv"
    path.write_text("\n".join(["user,place", *rows]) + "\n")
    return path


def ask(visits: Path, **more):
    asked = {"item": "place", "person": "user", "k": 12, "epsilon": 2, "delta": 0, "domain": PLACES}
    return top_k(visits, **(asked | more))


@pytest.mark.parametrize(
    "mechanism",
    [
        "permute-and-flip",
        "oneshot-exponential",
        "oneshot-laplace",
        "canonical-set",
        "oneshot-private-length",
    ],
)
def test_a_pure_mechanism_answers(visits, mechanism):
    release = ask(visits, mechanism=mechanism)
    assert (release.mechanism, release.delta) == (mechanism, 0)
    assert release.epsilon <= 2
    assert json.loads(release.to_json())["delta"] == 0
    guarantee = dict(release.receipt)["Guarantee"]
    assert guarantee == (
        f"epsilon = {release.epsilon:g}, without a delta. The guarantee holds with this figure; "
        "the question may have allowed a little more. The smaller it is, the better each person is "
        "protected. No one person changes the probability of any outcome by more than a factor of "
        "7.39 (e^epsilon), up or down. A guess whether a person is in the data, right 50% of the "
        "time without the answer, is right at most 88.1% of the time with it. A guess which of "
        "two things a person did is right at most 98.3% of the time: between these are two steps, "
        "the person removed and then added with other rows, so epsilon counts twice. Both start "
        "from 50%: someone who was surer before may be surer after. This holds also against "
        "someone who knows all rows of everybody else, for this one answer. Each further answer "
        "about the same people weakens it. This is about privacy; it does not say how accurate the "
        "list is."
    )


def test_the_rule_takes_the_set_and_an_order_is_asked_for(visits):
    release = ask(visits)
    assert release.mechanism == "canonical-set"
    assert not release.ordered
    assert release.chosen == len(release.items)
    assert ask(visits, ordered=True).mechanism == "oneshot-private-length"
    assert ask(visits, k=3).mechanism == "permute-and-flip"


def test_a_short_set_says_so_and_a_filled_one_marks_what_is_random(visits):
    # The chance of all 40 is below e^(−20): the size step would have to err by 4,000 persons.
    short = ask(visits, k=40, epsilon=0.05)
    assert short.chosen is not None
    assert len(short.items) == short.chosen < 40
    assert not short.complete
    assert short.filled == 0
    assert short.ending == (
        f"names {short.chosen} of 40 items: the size {short.chosen} was chosen with noise as what "
        "the counts can support."
    )
    missing = dict(short.receipt)["Missing items"]
    assert (
        f"The set was cut to {short.chosen}, the size that the noisy counts support: an item may "
        "be missing for that reason alone." in missing
    )
    whole = ask(visits, k=1, mechanism="canonical-set")  # there is no smaller set
    assert "cut to" not in dict(whole.receipt)["Missing items"]
    assert "all else equal, it is at least 2.7 times as likely" in short.threshold
    filled = ask(visits, k=40, epsilon=0.05, fill=True)
    assert filled.chosen is not None
    assert len(set(filled.items)) == 40
    assert filled.filled == 40 - filled.chosen > 0
    assert [rank for rank, _ in filled.ranked()].count("?") == filled.filled
    assert [row[0] for row in filled.rows()].count("?") == filled.filled
    assert filled.to_dict()["filled"] == filled.filled
    assert f"The last {filled.filled} were filled in at random" in filled.ending


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"domain": None}, "delta=0 needs a public domain"),
        ({"k": "auto"}, "k='auto' needs a delta above 0"),
        ({"counts": True}, "counts=True needs a delta above 0"),
        ({"mechanism": "gumbel"}, "mechanism='gumbel' needs a delta above 0; pass delta=1e-6, or"),
        ({"mechanism": "canonical-set", "ordered": True}, "answers a set, and ordered=True asks"),
        ({"mechanism": "oneshot-private-length", "fill": True}, "cannot complete its answer"),
        ({"fill": 1}, "fill=1 must be True or False"),
    ],
)
def test_what_cannot_be_answered_names_the_fix(visits, more, message):
    with pytest.raises(InvalidParameter) as raised:
        ask(visits, **more)
    assert message in str(raised.value)
    assert isinstance(raised.value, DomainRequired) == (more == {"domain": None})


def test_a_ledger_charges_the_two_steps(visits, tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open_budget("visits", Flexible.of(epsilon=1, delta=1e-6), person="user")
    release = ask(visits, epsilon=0.1, ledger=ledger, dataset="visits")
    assert release.charge is not None
    spent = ledger.account("visits").spent
    assert spent["rho"] <= 0.015**2 / 2 + 0.085**2 / 8 + 1e-9
    assert spent.get("delta", 0) == 0
    again = ask(visits, epsilon=0.1, ledger=ledger, dataset="visits")
    assert again.items == release.items
    other = ask(visits, epsilon=0.1, ledger=ledger, dataset="visits", fill=True)
    assert other.filled == len(other.items) - other.chosen
    assert ledger.account("visits").spent["rho"] > spent["rho"]


def test_the_fingerprint_has_only_what_was_asked_for():
    plain = Question.of(item="a", person="b", k=10, epsilon=1).fingerprint()
    assert {"ordered", "fill"}.isdisjoint(plain)
    wished = Question.of(item="a", person="b", k=10, epsilon=1, delta=0, ordered=True, fill=True)
    assert wished.fingerprint() == plain | {"delta": 0.0, "ordered": True, "fill": True}
    assert str(wished.fingerprint()["delta"]) == "0.0"
