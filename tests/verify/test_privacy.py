"""The exhaustive check passes what is right and refuses what is wrong."""

import pytest
from planted import Planted, Stated, limited_domain_law

from topsecret.accounting import picks
from topsecret.errors import InvalidParameter, VerificationFailed
from topsecret.mechanisms import GumbelTopK, LimitedDomain
from topsecret.verify import Neighbourhood, check_privacy
from topsecret.verify.privacy import neighbourhood_of

LIMITED = LimitedDomain(k=2, k_bar=3, epsilon_per_pick=0.7, delta=0.01)


@pytest.mark.parametrize("mechanism", GumbelTopK.verification_cases(), ids=str)
def test_gumbel_keeps_its_claim(mechanism: GumbelTopK) -> None:
    report = check_privacy(mechanism).require()
    assert report.tightest is not None
    assert report.between < 1e-6


@pytest.mark.parametrize("mechanism", LimitedDomain.verification_cases(), ids=str)
def test_limited_domain_keeps_its_claim(mechanism: LimitedDomain) -> None:
    report = check_privacy(mechanism).require()
    assert report.histograms == 625 + 17**2
    assert report.between < 1e-6


def test_limited_domain_is_tight() -> None:
    """ε₀ = .7, δ = .01, four items: the claim is 10⁻⁴ above the largest divergence."""
    tightest = check_privacy(LimitedDomain(4, 4, 0.7, 0.01)).tightest
    assert tightest is not None
    assert tightest.margin == pytest.approx(0.01 - 0.01 / 1.01, rel=1e-6)


def test_a_public_domain_is_checked_at_every_size_that_k_allows() -> None:
    report = check_privacy(GumbelTopK(k=2, scale=1.0), items=3, max_count=2, tall=2)
    assert report.histograms == 3**2 + 3**3
    assert report.outcomes == 6


def test_no_domain_of_that_size_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="raise items or lower k"):
        check_privacy(GumbelTopK(k=3, scale=1.0), items=2)


def test_a_mechanism_says_who_its_neighbours_are() -> None:
    assert neighbourhood_of(GumbelTopK(1, 1.0, sensitivity=2)) == Neighbourhood(sensitivity=2)
    limited = LimitedDomain(2, 3, 0.7, 0.01, max_items=2, adjacency="replace")
    assert neighbourhood_of(limited) == Neighbourhood("replace", 2)


# --- wrong versions ---------------------------------------------------------------------------


def test_the_law_written_again_is_the_law() -> None:
    """So that what the planted versions change is what is caught."""
    law = limited_domain_law(LIMITED, plus=1, reach=3)
    check_privacy(Stated(law, LIMITED.loss)).require()


def test_a_threshold_without_plus_one_is_caught() -> None:
    law = limited_domain_law(LIMITED, plus=0, reach=3)
    report = check_privacy(Stated(law, LIMITED.loss))
    assert report.broken is not None
    assert report.broken.divergence > 1.9 * report.broken.claim
    with pytest.raises(VerificationFailed, match=r"breaks its claim at epsilon=.* between \{"):
        report.require()


def test_a_strict_edge_with_the_reach_of_one_person_is_caught() -> None:
    """``strict`` must use M = k̄; with M = Δ it is not private."""
    strict = LimitedDomain(2, 3, 0.7, 0.01, max_items=1, strict=True)
    law = limited_domain_law(strict, plus=1, reach=1)
    report = check_privacy(Stated(law, strict.loss, max_items=1))
    assert report.broken is not None
    check_privacy(Stated(limited_domain_law(strict, plus=1, reach=3), strict.loss)).require()


def test_declared_max_items_that_a_person_exceeds_is_caught() -> None:
    """``max_items`` is enforced, not believed."""
    declared = LimitedDomain(2, 4, 0.7, 0.01, max_items=1)
    check_privacy(declared).require()
    assert not check_privacy(declared, neighbourhood=Neighbourhood(max_items=4)).passed


def test_add_remove_noise_under_replace_is_caught() -> None:
    for mechanism in (GumbelTopK(1, 10 / 7), GumbelTopK(2, 10 / 7), LIMITED):
        assert not check_privacy(mechanism, neighbourhood=Neighbourhood("replace")).passed


@pytest.mark.parametrize("k", [1, 2])
def test_a_noise_scale_five_percent_too_small_is_caught(k: int) -> None:
    right, wrong = GumbelTopK(k, 10 / 7), GumbelTopK(k, 0.95 * 10 / 7)
    report = check_privacy(Planted(claims=right, law=wrong, draws=right))
    assert report.broken is not None
    assert report.broken.margin < 0


def test_limited_domain_with_a_price_five_percent_too_high_is_caught() -> None:
    """Only where the threshold is low enough for small counts to pass it do the picks matter."""
    right, wrong = LimitedDomain(1, 3, 3.0, 0.01), LimitedDomain(1, 3, 3.0 / 0.95, 0.01)
    report = check_privacy(Planted(claims=right, law=wrong, draws=right))
    assert report.broken is not None
    assert 0 < report.broken.epsilon < 3.0
    assert right in LimitedDomain.verification_cases()


def test_a_budget_not_multiplied_by_the_number_of_picks_is_caught() -> None:
    mechanism = GumbelTopK(2, 10 / 7)
    assert not check_privacy(Stated(mechanism.probabilities, picks(1, 0.7))).passed


def test_a_report_is_json() -> None:
    fields = check_privacy(GumbelTopK(1, 1.0), items=2, max_count=1, tall=1).to_dict()
    assert fields["passed"] is True
    assert fields["mechanism"] == "GumbelTopK(k=1, scale=1)"
    assert fields["neighbourhood"] == {
        "adjacency": "add-remove",
        "max_items": None,
        "sensitivity": 1,
    }
