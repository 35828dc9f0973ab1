"""A release as a record that a ledger keeps, and the release back from it, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from datetime import datetime
from typing import Any

from topsecret.questions.privacy_unit import PrivacyUnit
from topsecret.results.group_releases import Releases
from topsecret.results.release import Release


def to_record(release: Release) -> dict[str, object]:
    """Every field as a value that JSON can hold; items that are no JSON values become text."""
    record: dict[str, object] = {
        field.name: getattr(release, field.name) for field in fields(Release)
    }
    record["items"] = [_plain(item) for item in release.items]
    record["counts"] = None if release.counts is None else list(release.counts)
    record["parameters"] = dict(release.parameters)
    record["unit"] = asdict(release.unit)
    record["time"] = release.time.isoformat()
    return record


def from_record(record: Mapping[str, Any]) -> Release:
    """The release that was stored; a field that is younger than the record has its default."""
    known = {field.name for field in fields(Release)}
    values = {name: value for name, value in record.items() if name in known}
    values["items"] = tuple(
        tuple(item) if isinstance(item, list) else item for item in values["items"]
    )
    if values.get("counts") is not None:
        values["counts"] = tuple(values["counts"])
    values["unit"] = PrivacyUnit(**values["unit"])
    values["time"] = datetime.fromisoformat(values["time"])
    return Release(**values)


def to_records(releases: Releases) -> dict[str, object]:
    """The same for the releases of several groups."""
    return {
        "by": releases.by,
        "composition": releases.composition,
        "epsilon": releases.epsilon,
        "delta": releases.delta,
        "groups": [[group, to_record(release)] for group, release in releases.items()],
    }


def from_records(record: Mapping[str, Any], charge: str, time: datetime) -> Releases:
    """The releases that were stored, each with what they cost together and when."""
    groups = {
        group: replace(from_record(release), charge=charge, time=time)
        for group, release in record["groups"]
    }
    return Releases(record["by"], groups, record["composition"], record["epsilon"], record["delta"])


def _plain(item: Any) -> Any:
    if isinstance(item, tuple):
        return [_plain(part) for part in item]
    return item if isinstance(item, str | int | float | None) else str(item)
