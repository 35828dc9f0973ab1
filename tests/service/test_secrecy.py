"""Nothing secret in any output: a canary item and a canary person are planted and looked for.

The item is rare, so no answer may name it but by the failure that delta allows. Everything that
the service writes is searched: its log, its answers, its errors, its metrics, its pages.
"""

from pathlib import Path

import httpx
from serving import (
    BRIEF,
    PASSWORD,
    PATIENCE,
    PLACES,
    SHOP,
    Server,
    settings,
    write_events,
    write_table,
)

from topsecret.service.datasets import NewDataset
from topsecret.service.state import Parts

ITEM, PERSON = "canary-item-7Qx", "canary-person-3Zk"


def test_a_canary_is_nowhere_to_be_seen(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    write_events(files / "good.csv", PLACES, f"{PERSON},{ITEM},red\n")
    # A row with too many fields makes the engine fail, and its own error would quote the row.
    write_events(files / "broken.csv", PLACES, f'{PERSON},{ITEM},red,"{ITEM}\n')
    address = f"sqlite:///{tmp_path / SHOP}"
    write_table(address, PLACES, (PERSON, ITEM))
    parts = Parts(settings(tmp_path))
    parts.accounts.add("olga", "owner", PASSWORD)
    for name in ("good", "broken"):
        parts.datasets.register(
            NewDataset(name, name, f"{name}.csv", "user", ("place",), None, 8.0, 1e-5)
        )
    parts.datasets.register(
        NewDataset("table", "T", "", "who", ("place",), 2, 8.0, 1e-5, source="shop", table="visits")
    )
    for name in ("good", "broken", "table"):
        parts.datasets.allow(name, "olga", {"epsilon": 8.0})
    key = parts.accounts.new_key("olga", "canary")
    server = Server(tmp_path, "--tick", "0.1", "--source", f"shop={address}")
    seen: list[str] = []
    try:
        with httpx.Client(
            base_url=server.address,
            headers={"authorization": f"Bearer {key}"},
            timeout=PATIENCE,
            limits=BRIEF,
        ) as client:

            def get(path: str, **more: object) -> httpx.Response:
                answer = client.get(path, **more)  # type: ignore[arg-type]
                seen.append(answer.text + str(answer.headers))
                return answer

            states = {}
            for name in ("good", "broken", "table"):
                body = {"column": "place", "k": 3, "epsilon": 1.0}
                asked = client.post(f"/api/datasets/{name}/ask", json=body)
                seen.append(asked.text)
                while (job := get(f"/api/answers/{asked.json()['id']}").json())["state"] == (
                    "working"
                ):
                    pass
                states[name] = job["state"]
                get(f"/answers/{job['id']}", headers={"accept": "text/html"})
                get(f"/api/answers/{job['id']}/csv")
                get(f"/owner/datasets/{name}", headers={"accept": "text/html"})
                get(f"/datasets/{name}", headers={"accept": "text/html"})
            assert states == {"good": "answered", "broken": "failed", "table": "answered"}
            for path in ("/", "/answers", "/owner", "/owner/in-doubt", "/owner/new?file=good.csv"):
                get(path, headers={"accept": "text/html"})
            for path in ("/owner/new?source=shop", "/owner/new?source=shop&table=visits"):
                get(path, headers={"accept": "text/html"})
            get("/api/sources/shop")
            get("/metrics")
            get(f"/api/answers/{ITEM}")
            client.get(f"/nothing/{ITEM}?person={PERSON}")  # for the log
            client.request(f"X-{PERSON.upper()}", "/")
    finally:
        server.stop()
    log = server.log.read_text(encoding="utf-8")
    assert log.count("\n") > 20
    for text in (*seen, log):
        for canary in (ITEM, PERSON):
            assert canary.lower() not in text.lower()


def test_a_mistake_is_not_repeated(service) -> None:  # type: ignore[no-untyped-def]
    secret = "hunter2-hunter2"
    for body in (
        {"column": secret * 20},
        {"column": "place", secret: 1},
        {"column": "place", "k": secret},
        {"column": "place", "epsilon": secret, "request_id": f"bad id {secret}"},
        [secret],
    ):
        answer = service.call("ann", "POST", "/api/datasets/events/ask", body)
        assert answer.status_code == 422
        assert set(answer.json()) == {"error", "message", "request_id"}
        assert secret not in answer.text
        assert answer.headers["x-request-id"] == answer.json()["request_id"]


def test_only_hashes_are_kept(service) -> None:  # type: ignore[no-untyped-def]
    import contextlib
    import hashlib
    import sqlite3

    place = service.parts.settings.place
    with contextlib.closing(sqlite3.connect(place)) as connection:
        dump = "\n".join(connection.iterdump())
    assert PASSWORD not in dump
    for key in service.keys.values():
        secret = key.split("_", 2)[2]
        assert secret not in dump
        assert hashlib.sha256(secret.encode()).hexdigest() in dump
    assert dump.count("$argon2id$") >= 3
    assert Path(place).stat().st_mode & 0o077 == 0
