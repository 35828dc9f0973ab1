"""Texts that can be sent: half a surrogate pair, which JSON and UTF-7 can write, is no text.

>>> sendable({"label": "café"}), sendable(["caf\\ud800"])
(True, False)
>>> shown({"label": "caf\\ud800"})
{'label': 'caf?'}
"""

from __future__ import annotations

from typing import Any

from topsecret.service.problems import Problem


def sendable(value: object) -> bool:
    """Whether every text in plain values can be encoded."""
    waiting = [value]
    while waiting:  # no recursion: how deep it goes is the sender's choice
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += [*one, *one.values()]
        elif isinstance(one, list | tuple):
            waiting += one
        elif isinstance(one, str) and one != shown(one):
            return False
    return True


def check_sendable(value: object) -> None:
    """Refuse what could be stored, and never be shown again."""
    if not sendable(value):
        raise Problem(422, "invalid_request", "A text is not Unicode: half a surrogate pair in it.")


def shown(value: Any) -> Any:
    """Plain values with a question mark for whatever cannot be sent, as older versions stored."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {shown(name): shown(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [shown(one) for one in value]
    return value
