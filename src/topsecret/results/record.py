"""An answer as a record that a ledger keeps, and the answer back from it, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from topsecret.accounting.charge import Charge
from topsecret.accounting.privacy_unit import PrivacyUnit
from topsecret.results.export import plain
from topsecret.results.group_releases import Releases
from topsecret.results.intervals import Intervals
from topsecret.results.release import Release

FORM = 2
"""The version of a record; 1 had no number, and a charge in words."""


def to_record(answer: Release | Releases) -> dict[str, object]:
    """Every field as a value that JSON can hold; items that are no JSON values become text."""
    if isinstance(answer, Releases):
        return {
            "form": FORM,
            "by": answer.by,
            "composition": answer.composition,
            "epsilon": answer.epsilon,
            "delta": answer.delta,
            "groups": [[group, to_record(release)] for group, release in answer.items()],
        }
    record: dict[str, object] = {
        field.name: getattr(answer, field.name)
        for field in fields(Release)
        if field.name != "paid_in_advance"  # of the schedule or series that shows it
    }
    return record | {
        "form": FORM,
        "items": [plain(item) for item in answer.items],
        "counts": None if answer.counts is None else list(answer.counts),
        "intervals": None if answer.intervals is None else asdict(answer.intervals),
        "weighted": None if answer.weighted is None else list(answer.weighted),
        "at_least": None if answer.at_least is None else list(answer.at_least),
        "parameters": dict(answer.parameters),
        "assumes": list(answer.assumes),
        "unit": asdict(answer.unit),
        "time": answer.time.isoformat(),
        "charge": None if answer.charge is None else answer.charge.to_dict(),
    }


@lru_cache(maxsize=256, typed=True)
def _unit(**fields: Any) -> PrivacyUnit:
    return PrivacyUnit(**fields)


def from_record(record: Mapping[str, Any]) -> Release | Releases:
    """The answer that was stored; a field that is younger than the record has its default."""
    if "groups" in record:
        groups = {group: release_from(release) for group, release in record["groups"]}
        terms = record["composition"], record["epsilon"], record["delta"]
        return Releases(record["by"], groups, *terms)
    return release_from(record)


def release_from(record: Mapping[str, Any]) -> Release:
    """The one list that was stored."""
    known = {field.name for field in fields(Release)}
    values = {name: value for name, value in record.items() if name in known}
    values["items"] = tuple(
        tuple(item) if isinstance(item, list) else item for item in values["items"]
    )
    for numbers in ("counts", "weighted", "at_least"):
        if values.get(numbers) is not None:
            values[numbers] = tuple(values[numbers])
    values["assumes"] = tuple(values.get("assumes", ()))
    values["parameters"] = MappingProxyType(dict(values["parameters"]))
    intervals = values.get("intervals")
    values["intervals"] = Intervals(**intervals) if intervals else None
    values["unit"] = _unit(**values["unit"])
    values["time"] = datetime.fromisoformat(values["time"])
    charge = values.get("charge")
    values["charge"] = Charge.from_dict(charge) if charge else None
    return Release(**values)
