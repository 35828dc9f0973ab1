"""What requests may hold: every shape, walked."""

from collections.abc import Iterator

import pytest
from pydantic import ValidationError
from serving import Here

from topsecret.service.app import ROUTERS
from topsecret.service.shapes import Strict

assert ROUTERS  # whose modules have the shapes


def requests(shape: type[Strict] = Strict) -> Iterator[type[Strict]]:
    for one in shape.__subclasses__():
        yield one
        yield from requests(one)


@pytest.mark.parametrize("shape", sorted(set(requests()), key=lambda one: one.__name__))
@pytest.mark.parametrize("value", [True, False])
def test_a_boolean_is_no_number(shape: type[Strict], value: bool) -> None:
    for name, field in shape.model_fields.items():
        if field.annotation is bool:
            continue
        with pytest.raises(ValidationError) as refused:
            shape.model_validate({name: value})
        assert name in {str(error["loc"][0]) for error in refused.value.errors()}, name


def test_the_walk_has_the_shapes_of_every_module() -> None:
    names = {one.__module__.rpartition(".")[2] for one in requests()}
    assert names == {"shapes", "owner_shapes", "api_schedules"}


def test_an_epsilon_of_true_spends_nothing(service: Here) -> None:
    body = {"column": "place", "k": 1, "epsilon": True}
    for path in ("plan", "ask"):
        refused = service.call("ann", "POST", f"/api/v1/datasets/events/{path}", body)
        assert refused.status_code == 422
        assert "epsilon: float type" in refused.json()["message"]
    # As programs have sent them before.
    for epsilon in (1, 0.5, "0.5"):
        planned = service.call(
            "ann", "POST", "/api/v1/datasets/events/plan", body | {"epsilon": epsilon}
        )
        assert planned.status_code == 200
