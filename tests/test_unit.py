import pytest

from topsecret.accounting.privacy_unit import PrivacyUnit
from topsecret.errors import InvalidParameter


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"person": ""}, "person='' must be the name of a column; pass person='...'"),
        (
            {"person": "user", "adjacency": "swap"},
            "adjacency='swap' must be one of add-remove, replace, outcomes",
        ),
        (
            {"person": "user", "max_items": 0},
            "max_items=0 must be at least 1; raise it or leave it out",
        ),
    ],
)
def test_parameters_are_checked(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        PrivacyUnit(**fields)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_neighbours_in_words() -> None:
    assert "one person more" in PrivacyUnit("user").neighbours
    assert "replaced" in PrivacyUnit("user", adjacency="replace").neighbours
