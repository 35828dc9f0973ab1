"""Passwords, API keys and tokens: made here, kept as hashes, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from threading import BoundedSemaphore

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from topsecret.errors import InvalidParameter

SHORTEST_PASSWORD, LONGEST_PASSWORD = 12, 200

# As RFC 9106 recommends where memory is short (argon2id, 64 MiB, 3 passes), but in one lane: the
# service checks several passwords at once on few cores.
_PASSWORDS = PasswordHasher(time_cost=3, memory_cost=65536, parallelism=1)
_AT_ONCE = BoundedSemaphore(2)  # hashing is heavy on purpose: log-ins must not fill the memory

# Of a random password that was thrown away, with the same work; to hash one here would make every
# start of a service wait.
_NOBODY = (
    "$argon2id$v=19$m=65536,t=3,p=1$L7TRULgEQ8Hy7OP/28ElsQ"
    "$bovC2RkhkKMaoHPwbeQUPBfGLWwDfoYFqUfzhjl2IIM"
)
_PROCESS = secrets.token_bytes(32)

KEY_PREFIX = "tsk"


def hash_password(password: str) -> str:
    """The hash of a new password, once it is long enough."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise InvalidParameter(
            f"a password needs {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters; "
            "a few random words make a good one"
        )
    with _AT_ONCE:
        return _PASSWORDS.hash(password)


def password_matches(password: str, stored: str | None) -> bool:
    """Whether it is the password; an unknown account takes as long as a wrong password."""
    return _matches(password[: LONGEST_PASSWORD + 1], stored, _NOBODY)


def new_password() -> str:
    """A first password that the owner hands over: 100 random bits in four groups."""
    letters = "abcdefghjkmnpqrstuvwxyz23456789"
    return "-".join("".join(secrets.choice(letters) for _ in range(5)) for _ in range(4))


def new_key() -> tuple[str, str, str]:
    """A key's id, the key as its user gets it, and the hash to keep."""
    identity, secret = secrets.token_hex(6), token()
    return identity, f"{KEY_PREFIX}_{identity}_{secret}", hash_token(secret)


def parse_key(key: str) -> tuple[str, str]:
    """A key's id and its secret part; both empty when it is no key."""
    parts = key.split("_", 2)
    if len(parts) != 3 or parts[0] != KEY_PREFIX or len(key) > 200:
        return "", ""
    return parts[1], parts[2]


def key_matches(secret: str, stored: str) -> bool:
    """Whether the secret is that key's."""
    if hashed_slowly(stored):
        return _matches(secret, stored, _NOBODY)
    return same(hash_token(secret), stored)


def hashed_slowly(stored: str) -> bool:
    """Whether a key's hash is one of argon2id, as all were once: see ``Accounts.by_key``."""
    return stored.startswith("$")


def fingerprint(secret: str) -> bytes:
    """What this process remembers a secret by that it has recognised: worthless elsewhere."""
    return hashlib.blake2b(secret.encode(), key=_PROCESS, digest_size=32).digest()


def token() -> str:
    """A random token of 256 bits."""
    return secrets.token_urlsafe(32)


def hash_token(value: str) -> str:
    """The hash to keep of a random token; random bits need no slow hash."""
    return hashlib.sha256(value.encode()).hexdigest()


def csrf_token(session: str) -> str:
    """The token that a session's forms carry; who has it cannot compute the session."""
    return hmac.new(session.encode(), b"topsecret form", hashlib.sha256).hexdigest()


def signature(secret: str, text: str) -> str:
    """What only who has the secret can compute of a text."""
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()


def same(one: str, other: str) -> bool:
    """Whether two texts are equal, in constant time."""
    # A form may hold half a surrogate pair, which is no reason to fail.
    return hmac.compare_digest(*(text.encode(errors="surrogatepass") for text in (one, other)))


def _matches(secret: str, stored: str | None, nobody: str) -> bool:
    with _AT_ONCE:
        try:
            _PASSWORDS.verify(stored or nobody, secret)
        except (VerificationError, InvalidHashError):
            return False
    return bool(stored)  # an account without a password has an empty one
