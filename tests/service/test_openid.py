"""Sign-in by OpenID Connect: a real provider, and one that lies in every way it can.

The first is ``oidc-provider-mock``, a provider of its own making over HTTP. The second signs what
the test tells it to.
"""

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, RSAKey
from serving import PASSWORD, PATIENCE, Here, here
from test_standing import before

from topsecret.errors import InvalidParameter
from topsecret.service.settings import Settings
from topsecret.service.web import openid_pages

CLIENT, SECRET = "topsecret", "a secret of the client's"


@contextmanager
def visiting(service: Here) -> Iterator[httpx.Client]:
    web = {"accept": "text/html"}
    with httpx.Client(base_url=service.client.base_url, timeout=PATIENCE, headers=web) as client:
        yield client


@contextmanager
def provider() -> Iterator[str]:
    """The address of a provider that knows everybody."""
    for _ in range(5):  # another process may be given the port before this one takes it
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        issuer = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", str(port)]
        silent = subprocess.DEVNULL
        process = subprocess.Popen([*command, "-n", "true"], stdout=silent, stderr=silent)
        try:
            if _answers(f"{issuer}/.well-known/openid-configuration", process):
                yield issuer
                return
        finally:
            process.kill()
            process.wait()
    raise AssertionError("the provider does not start")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    with provider() as issuer:
        options = {"openid_issuer": issuer, "openid_client": CLIENT, "openid_secret": SECRET}
        with here(tmp_path_factory.mktemp("real"), openid_claim="sub", **options) as service:
            yield service


def _answers(address: str, process: subprocess.Popen[bytes]) -> bool:
    """Whether the process, and not another at its port, answers before it ends."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = False
        with suppress(httpx.HTTPError):
            found = httpx.get(address, timeout=PATIENCE).is_success
        if process.poll() is not None:
            return False
        if found:
            return True
        time.sleep(0.05)
    raise AssertionError("the provider does not answer")


def sign_in(client: httpx.Client, subject: str, to: str = "") -> httpx.Response:
    """To the provider, through its form, and back."""
    away = client.get("/login/openid", params={"to": to})
    assert away.status_code == 303
    with httpx.Client(timeout=PATIENCE) as browser:
        back = browser.post(away.headers["location"], data={"sub": subject})
    assert back.status_code in (302, 303), back.text
    return client.get(back.headers["location"])


def test_a_real_provider_lets_in_whom_an_owner_invited(real: Here) -> None:
    body = {"name": "frida", "role": "owner", "sign_in": "openid"}
    made = real.call("olga", "POST", "/api/v1/analysts", body)
    assert (made.status_code, made.json()) == (201, {"name": "frida", "password": None})
    with visiting(real) as client:
        assert 'href="/login/openid' in client.get("/login").text
        inside = sign_in(client, "frida", "/owner")
        assert (inside.status_code, inside.headers["location"]) == (303, "/owner")
        assert client.get("/api/v1/me").json() == {"name": "frida", "role": "owner"}
        assert client.get("/owner").status_code == 200
    with visiting(real) as client:  # and again
        assert sign_in(client, "frida").status_code == 303
    entry = real.call("olga", "GET", "/api/v1/audit?limit=1").json()[0]
    assert (entry["by"], entry["action"], entry["details"]) == (
        "frida",
        "log in",
        {"with": "openid"},
    )
    # Who was invited has no password, and none opens the account.
    assert not real.parts.accounts.check_password("frida", "")
    with visiting(real) as client:
        assert sign_in(client, "stranger").status_code == 403
        assert client.get("/account").status_code == 303


def test_an_account_with_a_password_is_nobody_elses(real: Here) -> None:
    with visiting(real) as client:
        assert sign_in(client, "olga").status_code == 403
        assert client.get("/account").status_code == 303
    assert real.parts.accounts.check_password("olga", PASSWORD)


def test_a_reset_ends_sessions_and_keys_and_leaves_the_provider(real: Here) -> None:
    """As the docs say: whom the provider vouches for gets as far as the form for a password."""
    real.parts.identities.invite("rita", "analyst")
    with visiting(real) as client:
        assert sign_in(client, "rita").status_code == 303
        real.keys["rita"] = real.parts.accounts.new_key("rita", "tests")
        reset = real.client.post(
            "/owner/analysts/reset",
            data={"name": "rita"},
            headers={"authorization": f"Bearer {real.keys['olga']}"},
        )
        assert reset.status_code == 200
        assert real.call("rita", "GET", "/api/v1/me").status_code == 401
        assert client.get("/account").headers["location"].startswith("/login")
        assert sign_in(client, "rita").status_code == 303
        assert client.get("/account").headers["location"] == "/account/password"
        real.parts.accounts.set_password("rita", PASSWORD)
        assert sign_in(client, "rita").status_code == 303
        assert client.get("/account").status_code == 200


def test_a_deleted_account_stays_deleted(real: Here) -> None:
    real.parts.identities.invite("gone", "analyst")
    with visiting(real) as client:
        assert sign_in(client, "gone").status_code == 303
        assert real.call("olga", "DELETE", "/api/v1/analysts/gone").status_code == 200
        assert client.get("/account").status_code == 303
        assert sign_in(client, "gone").status_code == 403


def test_an_account_that_is_deleted_during_the_sign_in_is_not_signed_in(
    real: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    real.parts.identities.invite("going", "analyst")
    before(
        monkeypatch,
        real.parts.identities,
        "account",
        lambda: real.parts.accounts.deactivate("going"),
    )
    with visiting(real) as client:
        assert sign_in(client, "going").status_code == 403
    assert real.parts.accounts.sessions("going") == []


class Liar(ThreadingHTTPServer):
    """A provider whose tokens are what ``claims``, ``key`` and ``header`` make of them."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Replies)
        self.issuer = f"http://127.0.0.1:{self.server_port}"
        self.good = RSAKey.generate_key(2048, {"kid": "one", "use": "sig"})
        self.tell()

    def tell(self, **changes: Any) -> None:
        """The truth, but for these changes."""
        self.claims: dict[str, Any] = changes.pop("claims", {})
        self.key = changes.pop("key", self.good)
        self.algorithm = changes.pop("algorithm", "RS256")
        self.kid = changes.pop("kid", "one")
        self.described: dict[str, Any] = changes.pop("described", {})
        self.status = changes.pop("status", 200)
        self.asked: dict[str, str] = {}
        assert not changes

    def token(self, nonce: str) -> str:
        now = int(time.time())
        claims: dict[str, Any] = {"iss": self.issuer, "aud": CLIENT, "sub": "17", "nonce": nonce}
        claims |= {"iat": now, "exp": now + 300, "preferred_username": "Hanna"} | self.claims
        claims = {name: value for name, value in claims.items() if value is not None}
        header = {"alg": self.algorithm, "kid": self.kid}
        if self.algorithm == "none":
            import base64

            parts = [json.dumps(part).encode() for part in (header, claims)]
            sent = [base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts]
            return ".".join([*sent, ""])
        return jwt.encode(header, claims, self.key, algorithms=[self.algorithm])


class _Replies(BaseHTTPRequestHandler):
    server: Liar

    def do_GET(self) -> None:
        if self.path == "/keys":
            self._say(KeySet([self.server.good]).as_dict(private=False))
            return
        issuer = self.server.issuer
        told = {"issuer": issuer, "authorization_endpoint": f"{issuer}/authorize"}
        told |= {"token_endpoint": f"{issuer}/token", "jwks_uri": f"{issuer}/keys"}
        self._say(told | self.server.described)

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        sent = {name: one[0] for name, one in parse_qs(self.rfile.read(length).decode()).items()}
        self.server.asked = sent | {"authorization": self.headers.get("authorization", "")}
        self._say({"id_token": self.server.token(sent["code"])}, self.server.status)

    def _say(self, told: Any, status: int = 200) -> None:
        body = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def liar() -> Iterator[Liar]:
    with Liar() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def lied_to(liar: Liar, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    options = {"openid_issuer": liar.issuer, "openid_client": CLIENT, "openid_secret": SECRET}
    with here(tmp_path_factory.mktemp("liar"), **options) as service:
        for name in ("hanna", "mike"):
            service.parts.identities.invite(name, "analyst")
        yield service


def attempt(client: httpx.Client, **changes: str) -> httpx.Response:
    """As the provider's page would send the browser back: the code carries the nonce."""
    away = client.get("/login/openid")
    asked = parse_qs(urlsplit(away.headers["location"]).query)
    sent = {"state": asked["state"][0], "code": asked["nonce"][0]} | changes
    return client.get("/login/openid/back", params=sent)


def test_the_truth_is_believed(lied_to: Here, liar: Liar) -> None:
    liar.tell()
    with visiting(lied_to) as client:
        away = client.get("/login/openid")
        asked = parse_qs(urlsplit(away.headers["location"]).query)
        assert asked["code_challenge_method"] == ["S256"]
        assert asked["scope"] == ["openid profile"]
        assert "httponly" in away.headers["set-cookie"].lower()
        assert attempt(client).status_code == 303
        assert client.get("/account").status_code == 200
        assert liar.asked["authorization"].startswith("Basic ")
        assert len(liar.asked["code_verifier"]) >= 43
        # Several audiences, if it was made for us.
        liar.tell(claims={"aud": ["other", CLIENT], "azp": CLIENT})
        assert attempt(client).status_code == 303


STRANGER = RSAKey.generate_key(2048, {"kid": "one"})
LIES: dict[str, dict[str, Any]] = {
    "another issuer": {"claims": {"iss": "http://127.0.0.1:1"}},
    "another audience": {"claims": {"aud": "other"}},
    "no audience": {"claims": {"aud": None}},
    "several audiences, made for nobody": {"claims": {"aud": ["other", CLIENT]}},
    "several audiences, made for another": {"claims": {"aud": ["other", CLIENT], "azp": "other"}},
    "one audience, made for another": {"claims": {"azp": "other"}},
    "expired": {"claims": {"exp": 1000}},
    "no end": {"claims": {"exp": None}},
    "an end in words": {"claims": {"exp": "tomorrow"}},
    "from the future": {"claims": {"iat": 10**11}},
    "another nonce": {"claims": {"nonce": "x" * 43}},
    "no nonce": {"claims": {"nonce": None}},
    "no subject": {"claims": {"sub": None}},
    "an empty subject": {"claims": {"sub": ""}},
    "a stranger's key": {"key": STRANGER},
    "an unknown key": {"key": STRANGER, "kid": "two"},
    "another kind of key": {
        "key": ECKey.generate_key("P-256", {"kid": "one"}),
        "algorithm": "ES256",
    },
    "no signature": {"algorithm": "none"},
    "the client's secret": {
        "key": OctKey.import_key(SECRET.ljust(32)),
        "algorithm": "HS256",
    },
    "a refusal": {"status": 400},
    "a name that nobody waits for": {"claims": {"sub": "99", "preferred_username": "nobody"}},
    "another subject of a name that is taken": {"claims": {"sub": "99"}},
    "a name with the sign of kelvin for k": {
        "claims": {"sub": "99", "preferred_username": "mi\N{KELVIN SIGN}e"},
    },
    "a name that is no text": {"claims": {"sub": "99", "preferred_username": ["hanna"]}},
}


@pytest.mark.parametrize("lie", sorted(LIES))
def test_no_lie_is_believed(lied_to: Here, liar: Liar, lie: str) -> None:
    with visiting(lied_to) as client:
        liar.tell()
        assert attempt(client).status_code == 303  # the subject is known by now
        client.cookies.delete("topsecret_session")
        liar.tell(**LIES[lie])
        answer = attempt(client)
        assert answer.status_code == 403, lie
        assert "topsecret_session" not in client.cookies
        for hidden in (SECRET, liar.issuer):
            assert hidden not in answer.text


def test_an_answer_counts_for_its_own_attempt_alone(lied_to: Here, liar: Liar) -> None:
    liar.tell()
    with visiting(lied_to) as client, visiting(lied_to) as other:
        assert attempt(client, state="x" * 43).status_code == 403
        assert attempt(client, iss="http://127.0.0.1:1").status_code == 403
        assert attempt(client, code="").status_code == 403
        # Another's code and state in my browser: log-in of a victim to an attacker's account.
        asked = parse_qs(urlsplit(other.get("/login/openid").headers["location"]).query)
        sent = {"state": asked["state"][0], "code": asked["nonce"][0]}
        assert client.get("/login/openid/back", params=sent).status_code == 403
        # A cookie that was written by somebody else, or none.
        client.cookies.set("topsecret_openid", "e30=.00")
        assert client.get("/login/openid/back", params=sent).status_code == 403
        client.cookies.clear()
        assert client.get("/login/openid/back", params=sent).status_code == 403
        assert client.get("/account").status_code == 303
        away = other.get("/login/openid?to=//evil.example.org")
        asked = parse_qs(urlsplit(away.headers["location"]).query)
        sent = {"state": asked["state"][0], "code": asked["nonce"][0]}
        assert other.get("/login/openid/back", params=sent).headers["location"] == "/"


def test_a_provider_that_lies_about_itself_is_not_asked(liar: Liar, tmp_path: Path) -> None:
    options = {"openid_issuer": liar.issuer, "openid_client": CLIENT}
    with here(tmp_path, **options) as service, visiting(service) as client:
        for described in (
            {"issuer": "http://127.0.0.1:1"},
            {"authorization_endpoint": "http://provider.example.org/authorize"},
            {"authorization_endpoint": "javascript:alert(1)"},
        ):
            liar.tell(described=described)
            service.parts.openid._found = None  # type: ignore[union-attr]
            assert client.get("/login/openid").status_code == 503, described


def test_a_provider_that_hangs_keeps_nobody_else_waiting(
    lied_to: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    came, asked, ended = list[object](), list[object](), threading.Event()

    def hangs(*given: object) -> str:
        asked.append(given)
        ended.wait(60)
        return "https://provider.example.org/"

    monkeypatch.setattr(lied_to.parts.openid, "address", hangs)
    limited = openid_pages.limited

    def counted(*given: Any) -> None:
        came.append(given)
        limited(*given)

    monkeypatch.setattr(openid_pages, "limited", counted)
    door = f"{lied_to.client.base_url}/login/openid"
    with ThreadPoolExecutor(50) as pool:  # more than there are threads for all requests
        sent = [pool.submit(httpx.get, door, timeout=PATIENCE) for _ in range(50)]
        deadline = time.monotonic() + PATIENCE
        while len(came) < len(sent) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert lied_to.client.get("/api/health").status_code == 200
        waiting = len(asked)
        ended.set()
        assert {one.result().status_code for one in sent} == {303}
    assert waiting <= 4


def test_without_a_provider_there_is_no_such_door(service: Here) -> None:
    assert service.client.get("/login/openid").status_code == 404
    assert "openid" not in service.client.get("/login").text
    body = {"name": "ida", "sign_in": "openid"}
    assert service.call("olga", "POST", "/api/v1/analysts", body).status_code == 400


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"openid_issuer": "http://provider.example.org", "openid_client": "x"}, "https://"),
        ({"openid_issuer": "https://provider.example.org"}, "--openid-client"),
        ({"openid_client": "x"}, "needs --openid-issuer"),
    ],
)
def test_settings_that_cannot_work_are_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        Settings(home=Path("/srv"), **options)  # type: ignore[arg-type]
