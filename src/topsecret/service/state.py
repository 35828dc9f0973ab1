"""What one worker process is made of, and how handlers reach it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeVar
from weakref import WeakValueDictionary

from anyio import to_thread
from starlette.requests import Request

from topsecret.errors import InvalidParameter, TopSecretError
from topsecret.ledger import Ledger
from topsecret.ledger.store import Store
from topsecret.service import schema
from topsecret.service.account_places import AccountPlaces
from topsecret.service.audit import Trail
from topsecret.service.auth.accounts import Accounts
from topsecret.service.auth.devices import Devices
from topsecret.service.auth.identities import Identities
from topsecret.service.auth.openid import OpenId
from topsecret.service.auth.rate_limits import DAY, MINUTE, Limits
from topsecret.service.auth.recognised import Recognised
from topsecret.service.auth.roles import Roles
from topsecret.service.auth.standing import active
from topsecret.service.databases import Databases
from topsecret.service.dataset_life import Life
from topsecret.service.datasets import Datasets
from topsecret.service.health import Health
from topsecret.service.jobs.job import Asked
from topsecret.service.jobs.queue import Jobs
from topsecret.service.jobs.release_schedule import Turns
from topsecret.service.jobs.worker import Desk
from topsecret.service.logs import log
from topsecret.service.metrics import Metrics
from topsecret.service.notices import Notices
from topsecret.service.opening import Opening
from topsecret.service.question_rules import may_be_asked
from topsecret.service.saved_questions import SavedQuestions
from topsecret.service.schedules import MOST_RUNS_A_DAY, Schedules
from topsecret.service.settings import Settings
from topsecret.service.witness import Witness

T = TypeVar("T")

MOST_REMEMBERED, MOST_BYTES = 2000, 32 * 2**20
"""How many answers a process remembers, and how many bytes of them."""


class Stored(NamedTuple):
    """An answer that is final."""

    user: str
    dataset: str
    body: bytes


@dataclass(slots=True)
class Remembered:
    """Answers that are final, as bytes: whoever asks again is served without the store."""

    _answers: OrderedDict[str, Stored] = field(default_factory=OrderedDict)
    _size: int = 0

    def get(self, identity: str) -> Stored | None:
        """Whose answer it is, about which dataset, and the answer."""
        return self._answers.get(identity)

    def clear(self) -> None:
        """Forget all."""
        self._answers.clear()
        self._size = 0

    def put(self, identity: str, user: str, dataset: str, body: bytes) -> None:
        """Remember an answer that will not change."""
        before = self._answers.pop(identity, None)
        self._answers[identity] = Stored(user, dataset, body)
        self._size += len(body) - (0 if before is None else len(before.body))
        while len(self._answers) > MOST_REMEMBERED or self._size > MOST_BYTES:
            self._size -= len(self._answers.popitem(last=False)[1].body)


class Locks(WeakValueDictionary[str, asyncio.Lock]):
    """For keys whose hash is slow: one request at a time looks at each."""

    def __getitem__(self, name: str) -> asyncio.Lock:
        """The lock of a name, which lasts while somebody holds it or waits."""
        return self.setdefault(name, asyncio.Lock())


class Parts:
    """All that handlers need."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.store = Store(settings.place)
        schema.create(self.store)
        self.ledger = Ledger(settings.place)
        self.accounts = Accounts(self.store, Recognised(settings.mark_file))
        self.devices = Devices(self.store)
        self.roles = Roles(self.store, self.accounts.recognised)
        self.audit = Trail(self.store)
        self.identities, self.openid = Identities(self.store), _provider(settings)
        databases = Databases(settings.sources)
        self.datasets = Datasets(self.store, self.ledger, settings.files, databases)
        self.life = Life(self.store, self.ledger, self.datasets, self.accounts.recognised)
        turns = Turns(settings.engines, settings.tick, settings.limit)
        turns.noticed = self._noticed
        self.jobs = Jobs(self.store, self.ledger, self.datasets, turns)
        self.jobs.failed = lambda **what: log("question failed", **what)
        self.jobs.check = self._may_still_ask
        self.saved = SavedQuestions(self.store)
        witness = Witness(settings.witness_file)
        self.jobs.trust = witness.trust
        self.health = Health(self.store, witness.trust)
        self.metrics = Metrics()
        self.remembered = Remembered()
        self.limits = Limits(
            {
                "request": settings.requests_per_minute,
                "question": settings.questions_per_minute,
                "plan": settings.plans_per_minute,
                "try": settings.tries_per_minute,
                # More than one address may try: nobody alone keeps another's name from coming in.
                "name": 5 * settings.tries_per_minute,
                "accepted": 3 * settings.tries_per_minute,
                "run": MOST_RUNS_A_DAY,
            },
            {"accepted": 10 * MINUTE, "run": DAY},
        )
        self.desk = Desk(
            self.store,
            self.jobs,
            turns,
            sources=len(databases.names),
            ended=self.metrics.question,
            broke=lambda kind: log("failure", kind=kind, where="desk"),
            note=partial(self._note, witness),
            sweep=self._forget,
            tend=lambda: self.schedules.tend(self.desk.worker),
        )
        self.schedules = Schedules(
            self.store,
            self.ledger,
            self.jobs,
            check=self._may_still_ask,
            submit=self.desk.submit,
            lane=self.datasets.lane,
            tell=Notices(settings.notify).tell,
        )
        self.old_keys = Locks()
        # Plans are made one at a time: they are pure computing and must not starve the rest.
        self.planning = AccountPlaces(1)
        # A password is hashed for long on purpose: who waits for that holds no thread.
        self.hashing = AccountPlaces(2)
        # A provider of sign-ins may hang, and anybody may ask for it: few threads wait there.
        self.signing_in = AccountPlaces(4, 2)
        told = partial(log, "source does not open")
        self.opening = Opening(turns.hanging, lambda dataset: told(dataset=dataset))
        # Long lists, and all that is made of an answer, are made one at a time, too.
        self.listing = AccountPlaces(1)

    def _may_still_ask(self, user: str, dataset: str, asked: Asked) -> None:
        """What is asked in somebody's name is what they could ask now."""
        if not active(self.store, user):
            raise InvalidParameter("The account was deleted.")
        may_be_asked(self.datasets, user, dataset, asked)

    def _note(self, witness: Witness) -> None:
        """Note how far the ledger is; the operator is told why that cannot be done."""
        try:
            witness.note(self.ledger, self.audit)
        except TopSecretError as error:
            log("witness", message=str(error))
            raise

    def _noticed(self, dataset: str, hangs: bool) -> None:
        """Tell the operator of a dataset that no longer answers, or does again."""
        log("dataset hangs" if hangs else "dataset answers again", dataset=dataset)
        if hangs:
            self.metrics.hang(dataset)

    def _forget(self) -> None:
        """Delete what the operator does not want to keep."""
        if self.settings.keep_days is not None:
            self.jobs.forget(self.settings.keep_days)
            self.schedules.forget(self.settings.keep_days)
            self.remembered.clear()

    def close(self) -> bool:
        """Stop answering; False when a question had to be left under way."""
        # A question that was drawn waits for its tick.
        finished = self.desk.close(max(self.settings.grace, self.settings.tick))
        self.ledger.close()
        self.store.close()
        return finished


def _provider(settings: Settings) -> OpenId | None:
    """The provider of OpenID Connect, if there is one."""
    if not settings.openid_issuer:
        return None
    client = settings.openid_client, settings.openid_secret
    return OpenId(settings.openid_issuer, *client, settings.openid_claim)


def parts(request: Request) -> Parts:
    """The parts behind a request."""
    found: Parts = request.app.state.parts
    return found


async def blocking(call: Callable[[], T]) -> T:
    """Run what waits for the service's own disk or computes in a thread."""
    return await to_thread.run_sync(call)


async def in_turn(service: Parts, who: str, call: Callable[[], T]) -> T:
    """The same for what may be long: one at a time, accounts in turns."""
    async with service.listing.turn(who):
        return await blocking(call)
