"""Numbers as they are now, for Prometheus: the queue, what is in doubt, what is left of budgets.

All of it is what owners may see on their pages, and moves when those do: at ticks.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from topsecret.service.state import Parts
from topsecret.service.web.rendering import percent_left


def gauges(service: Parts) -> bytes:
    """The numbers in Prometheus' format."""
    registry = CollectorRegistry()
    Gauge(
        "topsecret_questions_under_way",
        "Questions without an end that is shown, of all workers.",
        registry=registry,
    ).set(service.jobs.under_way())
    left = Gauge(
        "topsecret_budget_left_ratio",
        "What is left of a dataset's budget, from 0 to 1, of the scarcest resource.",
        ("dataset",),
        registry=registry,
    )
    endless = Gauge(
        "topsecret_reservations_without_end",
        "Reservations of a dataset that are under way, or in doubt.",
        ("dataset",),
        registry=registry,
    )
    for dataset in service.datasets.all():
        account = service.datasets.account(dataset.name)
        left.labels(dataset.name).set(percent_left(account) / 100)
        endless.labels(dataset.name).set(len(account.pending))
    return generate_latest(registry)
