"""Sign-in by OpenID Connect: one provider, the authorization code flow with PKCE.

The provider says who somebody is, and nothing else: which accounts there are, and what they may do,
is decided here. An ID token counts when its signature is of one of the provider's keys, by an
algorithm with public keys, and its issuer, audience, time and nonce are those that were asked for
(OpenID Connect Core 1.0, section 3.1.3.7).
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from topsecret.errors import MissingExtra
from topsecret.service.auth import credentials
from topsecret.service.problems import Problem

if TYPE_CHECKING:
    from joserfc.jwk import KeySet

ALGORITHMS = ("RS256", "PS256", "ES256")
LEEWAY = 60.0
"""Seconds by which clocks may differ."""
PATIENCE = 10.0
LARGEST = 1_000_000
KEPT, RENEWED = 3600.0, 10.0
"""Seconds for which the provider's word is kept; keys that are unknown are asked for again."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What the browser brings back with it: only an answer to this very attempt counts."""

    state: str
    nonce: str
    verifier: str

    @classmethod
    def new(cls) -> Attempt:
        """Fresh secrets."""
        return cls(credentials.token(), credentials.token(), credentials.token())


@dataclass(frozen=True, slots=True)
class Identity:
    """Who somebody is to the provider."""

    subject: str
    name: str
    """What they are called there: an account that waits for this name becomes theirs."""


class OpenId:
    """One provider, asked as one client. Every method may block."""

    def __init__(self, issuer: str, client: str, secret: str, claim: str) -> None:
        try:
            import joserfc  # noqa: F401  # asked for here, so that the error names the extra
        except ImportError:
            raise MissingExtra(
                "--openid-issuer needs joserfc: pip install '.[openid]' in the checkout"
            ) from None
        self.issuer, self._client, self._secret, self._claim = issuer, client, secret, claim
        self._found: tuple[float, dict[str, Any]] | None = None
        self._keys: tuple[float, KeySet] | None = None

    def __repr__(self) -> str:
        return f"OpenId({self.issuer!r})"

    def address(self, attempt: Attempt, back: str) -> str:
        """Where the browser is sent."""
        challenge = hashlib.sha256(attempt.verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self._client,
            "redirect_uri": back,
            "scope": "openid profile",
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        where = self._place("authorization_endpoint")
        return f"{where}{'&' if '?' in where else '?'}{urlencode(asked)}"

    def identity(self, code: str, attempt: Attempt, back: str) -> Identity:
        """Who the code stands for, by the provider's signed word."""
        asked = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": back,
            "client_id": self._client,
            "code_verifier": attempt.verifier,
        }
        headers = {"content-type": "application/x-www-form-urlencoded"}
        if self._secret:
            pair = f"{quote(self._client, safe='')}:{quote(self._secret, safe='')}".encode()
            headers["authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        told = _fetch(self._place("token_endpoint"), urlencode(asked).encode(), headers)
        token = told.get("id_token")
        if not isinstance(token, str):
            raise refused()
        return self._checked(self._claims(token), attempt)

    def _claims(self, token: str) -> Mapping[str, Any]:
        """What the token says, once its signature is the provider's."""
        from joserfc import jwt
        from joserfc.errors import JoseError

        for renew in (False, True):
            try:
                return jwt.decode(token, self._key_set(renew=renew), ALGORITHMS).claims
            except (JoseError, ValueError):
                pass  # a key may be newer than those that were fetched
        raise refused()

    def _checked(self, claims: Mapping[str, Any], attempt: Attempt) -> Identity:
        """Whether the token is for us, now, and for this attempt."""
        now, audience = time.time(), claims.get("aud")
        several = audience if isinstance(audience, list) else [audience]
        ends, made = claims.get("exp"), claims.get("iat")
        subject, name = claims.get("sub"), claims.get(self._claim)
        good = (
            claims.get("iss") == self.issuer
            and self._client in several
            and claims.get("azp", self._client if len(several) == 1 else None) == self._client
            and isinstance(ends, int | float)
            and now < ends + LEEWAY
            and isinstance(made, int | float)
            and made < now + LEEWAY
            and credentials.same(str(claims.get("nonce") or ""), attempt.nonce)
            and isinstance(subject, str)
            and 0 < len(subject) <= 255
        )
        if not good:
            raise refused()
        # Accounts' names are ASCII; among others' capitals is one of "k" (U+212A).
        plain = isinstance(name, str) and name.isascii()
        return Identity(str(subject), str(name).lower() if plain else "")

    def _place(self, name: str) -> str:
        """An address of the provider, from its own description."""
        found = self._found
        if found is None or time.monotonic() > found[0] + KEPT:
            told = _fetch(f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
            if told.get("issuer") != self.issuer:
                raise _failed()
            found = self._found = time.monotonic(), told
        place = str(found[1].get(name) or "")
        if not safe(place):
            raise _failed()
        return place

    def _key_set(self, *, renew: bool) -> KeySet:
        from joserfc.jwk import KeySet

        kept = self._keys
        age = RENEWED if renew else KEPT
        if kept is None or time.monotonic() > kept[0] + age:
            told = _fetch(self._place("jwks_uri"))
            kept = self._keys = time.monotonic(), KeySet.import_key_set(told)  # type: ignore[arg-type]  # checked there
        return kept[1]


def safe(url: str) -> bool:
    """Whether what is sent there cannot be read on the way."""
    try:
        parts = urlsplit(url)
        local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    except ValueError:
        return False
    return bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and local))


def refused() -> Problem:
    """One answer for everything that is wrong: who tries learns nothing."""
    words = "The sign-in could not be verified. Try again, or ask an owner for an account."
    return Problem(403, "sign_in_refused", words)


def _failed() -> Problem:
    return Problem(503, "provider_failed", "The sign-in provider does not answer as it should.")


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _fetch(
    url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A JSON object from the provider; neither an error's text nor its address is passed on."""
    if not safe(url):
        raise _failed()
    request = Request(url, data=body, headers={"accept": "application/json", **(headers or {})})
    wrong, told = _failed(), None
    try:
        with build_opener(_NoRedirects).open(request, timeout=PATIENCE) as reply:
            told = json.loads(reply.read(LARGEST))
    except HTTPError as error:
        error.close()
        wrong = refused() if body is not None and error.code < 500 else _failed()
    except (OSError, ValueError):
        pass
    if not isinstance(told, dict):
        raise wrong
    return told
