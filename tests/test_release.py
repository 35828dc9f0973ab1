import copy
import json
import math
import pickle
import re
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import pytest

from topsecret.accounting.privacy_unit import PrivacyUnit
from topsecret.results.release import Release

RELEASE = Release(
    items=("Central Station", "Café 9"),
    complete=False,
    ordered=True,
    k=3,
    epsilon=0.9999,
    delta=1e-6,
    mechanism="limited-domain",
    parameters=MappingProxyType({"k_bar": 60, "epsilon_per_pick": 0.25, "threshold_delta": 5e-7}),
    bound="optimal",
    threshold="its noisy count beats a noisy threshold",
    unit=PrivacyUnit(person="user"),
    source="events.csv",
    item="place",
    version="0.1",
    time=datetime(2024, 5, 1, 12, 0, tzinfo=UTC),
)

TEXT = """\
Top 3 of 'place' in events.csv, by number of distinct people

 rank  place
    1  Central Station
    2  Café 9
    –  (no other item could be named safely)

Receipt
  Protected       each person, identified by the exact value of 'user', with all
                  their rows at once. Someone with two such values counts as two
                  people.
  Compared with   the same data with one person more or one person less. Had any
                  one person been left out or added, every outcome would have
                  had a similar probability; 'Guarantee' says how similar.
  Guarantee       epsilon = 0.9999 and delta = 1e-06. The guarantee holds with
                  these figures; the question may have allowed a little more.
                  The smaller they are, the better each person is protected. No
                  one person changes the probability of any outcome by more than
                  a factor of 2.72 (e^epsilon), up or down, and a further 1 in
                  1,000,000 (delta). For each person, the outcomes that would
                  prove whether they are in the data have at most that last
                  probability, all together. A guess whether a person is in the
                  data, right 50% of the time without the answer, is right at
                  most 73.2% of the time with it. A guess which of two things a
                  person did is right at most 88.1% of the time: between these
                  are two steps, the person removed and then added with other
                  rows, so epsilon counts twice. Both start from 50%: someone
                  who was surer before may be surer after. This holds also
                  against someone who knows all rows of everybody else, for this
                  one answer. Each further answer about the same people weakens
                  it. This is about privacy; it does not say how accurate the
                  list is.
  Protected less  two people together, such as a couple known to be both in the
                  data or both not, or one with two values: twice the epsilon,
                  and a delta of 3.72e-06, since one of the two deltas counts
                  e^epsilon times.
  Not covered     facts about many people at once (such as that an item is
                  common), from which something may follow about one of them;
                  the stored data themselves; what other answers about the same
                  people add.
  Sharing         the guarantee holds whoever sees the list and this receipt,
                  and whatever they do with them. Whether to publish is the data
                  owner's decision, by the epsilon and delta of all published
                  answers about the same people, and of all that helped to
                  choose them.
  The list        ended early, with 2 of 3 items: the next ones were too close
                  together to be named safely, or noise made them look so.
                  Random noise was added to protect each person: items that are
                  nearly level may change places, and one from below the list
                  may stand in it.
  Missing items   an item that is not listed may rank lower; it may have too few
                  people to be named safely; or it belongs on the list, and the
                  noise put others first. It does not follow that nobody has it.
  Named when      its noisy count beats a noisy threshold.
  Mechanism       (for specialists) named 'limited-domain' (k_bar=60,
                  epsilon_per_pick=0.25, threshold_delta=5e-07), with a line 1 +
                  ln(k_bar / threshold_delta) / epsilon_per_pick above the first
                  item that cannot be named; its steps are added up by the
                  optimal bound, so that epsilon may be less than their sum.
  Budget          without a ledger: nothing was recorded. Every answer about the
                  same people adds its epsilon and its delta, even this question
                  asked again. A ledger adds them up and refuses what exceeds a
                  total: topsecret budget open NAME --person COLUMN --epsilon
                  TOTAL, then --dataset NAME with every question. A question
                  without it is not counted.
  Made            2024-05-01 12:00:00 UTC by topsecret 0.1.
"""


def test_the_text_is_a_table_and_a_receipt() -> None:
    assert str(RELEASE) + "\n" == TEXT


def test_a_guess_between_two_things_has_the_delta_of_two_steps() -> None:
    """P ≤ e^ε·(e^ε·Q + δ) + δ, for the answer and for its opposite."""
    once, twice = (math.exp(n) / (1 + math.exp(n)) for n in (1, 2))
    text = str(replace(RELEASE, epsilon=1.0, delta=0.01).receipt)
    shown = [float(percent) for percent in re.findall(r"at most ([\d.]+)%", text)]
    right = [once + 0.01 / (1 + math.e), twice + 0.01 * (1 + math.e) / (1 + math.exp(2))]
    assert shown == [math.ceil(1000 * one) / 10 for one in right]


def test_a_complete_list_says_so() -> None:
    text = str(replace(RELEASE, complete=True, k=2))
    assert "has all 2 items asked for." in text
    assert "has the one item asked for." in str(replace(RELEASE, complete=True, k=1))
    assert "too close" not in text


def test_an_empty_list_says_the_usual_causes_whatever_the_data_are() -> None:
    assert "the columns of item and person" in str(replace(RELEASE, items=()))
    assert "Why empty" not in str(RELEASE)


def test_an_unordered_set_has_no_ranks() -> None:
    text = str(replace(RELEASE, ordered=False))
    assert "    ·  Central Station" in text
    assert "Its order means nothing." in " ".join(text.split())


def test_json_holds_everything() -> None:
    record = json.loads(RELEASE.to_json())
    assert record == RELEASE.to_dict()
    assert record["items"] == ["Central Station", "Café 9"]
    assert record["complete"] is False
    assert record["parameters"]["k_bar"] == 60
    assert record["time"] == "2024-05-01T12:00:00+00:00"
    assert set(record) == {
        *(
            "items",
            "complete",
            "ordered",
            "k",
            "chosen",
            "filled",
            "epsilon",
            "delta",
            "mechanism",
            "parameters",
        ),
        *("bound", "threshold", "source", "item", "person", "adjacency", "max_items"),
        *(
            "counts",
            "half_width",
            "persons",
            "intervals",
            "smoothed",
            "orders",
            "weighted",
            "at_least",
            "where",
            "group",
            "domain",
            "charge",
        ),
        *("receipt", "version", "time"),
    }


def test_names_cannot_control_a_terminal_or_a_page() -> None:
    hostile = replace(RELEASE, items=("\x1b[2J\n", "<script>alert(1)</script>"))
    assert "\x1b" not in str(hostile)
    assert r"\x1b[2J\n" in str(hostile)
    assert "<script>" not in hostile._repr_html_()
    assert "&lt;script&gt;" in hostile._repr_html_()


def test_the_page_has_ranks_and_receipt() -> None:
    page = RELEASE._repr_html_()
    assert "<td>1</td><td>Central Station</td>" in page
    assert "<dt>Guarantee</dt>" in page


def test_a_release_can_be_stored_and_copied() -> None:
    assert pickle.loads(pickle.dumps(RELEASE)) == RELEASE
    assert copy.deepcopy(RELEASE) == RELEASE


def test_a_release_does_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        RELEASE.epsilon = 0.1  # type: ignore[misc]
    with pytest.raises(TypeError):
        RELEASE.parameters["k_bar"] = 1  # type: ignore[index]


COUNTED = replace(
    RELEASE,
    items=(("Bonn", "Park $1"), ("Ulm", "<b>")),
    counts=(120, -3),
    half_width=12,
    domain="a list of 9 items",
    where="country = 'DE'",
)


def test_counts_are_shown_with_their_interval() -> None:
    text = str(COUNTED)
    assert "       120 ± 12  Bonn · Park $1" in text
    assert "where country = 'DE'" in text
    assert "within 12 of the one shown with 95% probability" in " ".join(text.split())
    assert "Public domain" in text
    assert "all items of the public domain could be named" in " ".join(text.split())
    page = COUNTED._repr_html_()
    assert "<td>-3 ± 12</td>" in page
    assert "&lt;b&gt;" in page


def test_csv_has_a_line_for_each_item() -> None:
    assert RELEASE.to_csv().splitlines()[1] == "1,Central Station"
    assert COUNTED.to_csv().splitlines()[0] == "rank,place,persons,within,smoothed,before next"


def test_a_tuple_stays_a_tuple_in_records() -> None:
    from topsecret.results.record import from_record, to_record

    stored = json.loads(json.dumps(to_record(COUNTED)))
    assert from_record(stored) == COUNTED
    assert json.loads(COUNTED.to_json())["items"] == [["Bonn", "Park $1"], ["Ulm", "<b>"]]


@pytest.mark.parametrize("release", [RELEASE, COUNTED, replace(RELEASE, items=())])
def test_plots(release: Release, tmp_path: Path) -> None:
    path = tmp_path / "bars.png"
    release.plot().savefig(path)
    assert path.stat().st_size > 2000
