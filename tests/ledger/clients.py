"""Clients of one ledger: a process with several threads that ask, until it is done or killed.

``python clients.py PLACE LOG FIRST LAST THREADS`` asks the requests FIRST … LAST − 1. What a
client saw goes to LOG, one line per event, written before it goes on; a process that is started
again with the same LOG repeats the requests that have no end there, under their request ids.
"""

import os
import random
import sys
import threading
import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from queue import Empty, SimpleQueue

from asking import PRICE, QUERY_DELTA, limited, request

from topsecret.errors import BudgetExceeded, InDoubt, LedgerError
from topsecret.ledger import Ledger, Request, Reservation
from topsecret.ledger.chain import canonical, digest

METERED, FLEXIBLE = "metered", "flexible"
ENDS = ("shown", "refused", "doubt")


@dataclass(frozen=True)
class Seen:
    """A line of a log."""

    event: str
    number: int
    detail: str = ""


def read_log(log: Path) -> list[Seen]:
    """All whole lines; a kill may have cut the last one short."""
    if not log.exists():
        return []
    lines = log.read_text().split("\n")[:-1]
    words = (line.split(" ") for line in lines)
    return [Seen(event, int(number), detail) for event, number, detail in words]


def asked(number: int) -> Request:
    """The request of this number: every fourth repeats the question of an earlier one."""
    question = number if number % 4 else max(0, number - 4)
    draws = random.Random(question)
    k = draws.randint(1, 5)
    epsilon = PRICE if question % 2 else Fraction(draws.randint(1, 4), 64)
    return request(
        k,
        question,
        dataset=METERED if question % 2 else FLEXIBLE,
        price=limited(k, epsilon, QUERY_DELTA),
        request_id=f"r{number}",
    )


def ask(ledger: Ledger, number: int, log: int) -> None:
    """One request as ``paid`` orders it, with what was seen written down in between."""

    def saw(event: str, detail: str = "-") -> None:
        os.write(log, f"{event} {number} {detail}\n".encode())

    wanted = asked(number)
    while True:
        try:
            found = ledger.reserve(wanted, wait=0.5)
            if isinstance(found, Reservation):
                saw("reserved", found.id)
                time.sleep(random.random() * 0.01)  # reads and draws
                picks = wanted.price.picks
                symbols = random.randint(1, picks.count if picks else 1)
                found = ledger.settle(found, {"drawn": random.getrandbits(64)}, symbols)
            return saw("shown", digest(canonical(found.answer)))
        except BudgetExceeded:
            return saw("refused")
        except InDoubt:
            return saw("doubt")
        except LedgerError:  # the server was killed: ask again, under the same request id
            time.sleep(0.1)


def main() -> None:
    place, log, first, last, threads = sys.argv[1:]
    done = {seen.number for seen in read_log(Path(log)) if seen.event in ENDS}
    open_requests: SimpleQueue[int] = SimpleQueue()
    for number in range(int(first), int(last)):
        if number not in done:
            open_requests.put(number)
    out = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.write(out, b"started 0 -\n")
    ledger = Ledger(place)

    def client() -> None:
        while True:
            try:
                number = open_requests.get_nowait()
            except Empty:
                return
            ask(ledger, number, out)

    crowd = [threading.Thread(target=client) for _ in range(int(threads))]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()


if __name__ == "__main__":
    main()
