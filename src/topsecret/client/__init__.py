"""A service, asked from Python by calls that look like the library's.

::

    service = topsecret.connect("https://topsecret.example.org", key)
    service.top_k("checkins", item="place", k=10, epsilon=0.5).items

``topsecret.client.service`` has all calls, ``topsecret.client.answers`` what they return.
"""

from topsecret.client.answers import (
    Answer,
    Answers,
    Budget,
    Preview,
    Run,
    SavedQuestion,
    Schedule,
)
from topsecret.client.service import Service, connect

__all__ = [
    "Answer",
    "Answers",
    "Budget",
    "Preview",
    "Run",
    "SavedQuestion",
    "Schedule",
    "Service",
    "connect",
]
