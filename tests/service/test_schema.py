"""Schemathesis tries the API out by its own OpenAPI schema: no 5xx, no broken promise.

``TOPSECRET_SOAK=1`` tries more.
"""

import os

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from serving import PATIENCE, Here

EXAMPLES = 50 if os.environ.get("TOPSECRET_SOAK") == "1" else 3
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)


def test_the_api_keeps_to_its_schema(service: Here) -> None:
    schema = schemathesis.openapi.from_dict(service.client.get("/openapi.json").json())
    tried = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        for who in ("ann", "olga"):

            @settings(
                max_examples=EXAMPLES,
                suppress_health_check=list(HealthCheck),
            )
            @operation_cases(operation)
            def attempt(case: schemathesis.Case) -> None:
                nonlocal tried
                tried += 1
                case.call_and_validate(
                    base_url=str(service.client.base_url),
                    headers={"authorization": f"Bearer {service.keys[who]}"},  # noqa: B023
                    checks=CHECKS,
                    timeout=PATIENCE,
                )

            attempt()
    assert tried > 200


def test_databases_keep_to_the_schema(service: Here) -> None:
    """Chance does not find the name of a database, so these are tried by hand."""
    schema = schemathesis.openapi.from_dict(service.client.get("/openapi.json").json())
    register = schema["/api/v1/datasets"]["POST"]
    body = {"title": "T", "person": "who", "columns": ["place"], "epsilon": 1}
    tried = [
        schema["/api/v1/sources/{source}"]["GET"].Case(path_parameters={"source": name})
        for name in ("shop", "nothing")
    ]
    for number, more in enumerate(
        (
            {"source": "shop", "table": "visits"},
            {"source": "shop", "table": "sqlite_master"},
            {"source": "shop", "table": 'visits"; DROP TABLE visits; --'},
            {"source": "shop", "table": ".."},
            {"source": "shop"},
            {"table": "visits"},
            {"source": "shop", "table": "visits", "file": "events.csv"},
            {"source": "sqlite://", "table": "visits"},
            {},
        )
    ):
        given = body | more | {"name": f"t{number}"}
        tried.append(register.Case(body=given, media_type="application/json"))
    codes = []
    for case in tried:
        answer = case.call_and_validate(
            base_url=str(service.client.base_url),
            headers={"authorization": f"Bearer {service.keys['olga']}"},
            checks=CHECKS,
            timeout=PATIENCE,
        )
        codes.append(answer.status_code)
    assert codes == [200, 400, 201, *[400] * 8]


def operation_cases(operation):  # type: ignore[no-untyped-def]
    from hypothesis import given

    return given(case=operation.as_strategy())
