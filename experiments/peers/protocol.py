"""What every peer script is asked and answers; it runs in the peer's environment, standard library.

python opendp_peer.py EVENTS.csv EPSILON DELTA CAP RUNS: the 50 items with the most noisy persons of
each run, seconds of each run, and the peak of memory of the process and its children in MiB.
"""

import json
import resource
import sys
import time

LONGEST = 50


def serve(answer, **more):
    """Run ``answer(path, epsilon, delta, cap)``, which names items best first, and report."""
    path, epsilon, delta = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    cap, runs = int(sys.argv[4]), int(sys.argv[5])
    seconds, items = [], []
    for _ in range(runs):
        start = time.perf_counter()
        named = [str(item) for item in answer(path, epsilon, delta, cap)]
        seconds.append(time.perf_counter() - start)
        items.append(named[:LONGEST])
    peak = own_peak() + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "items": items, "peak": peak, **more}))


def own_peak():
    """In MiB. Linux counts what the parent held into ru_maxrss, and its own record does not."""
    try:
        with open("/proc/self/status", encoding="utf-8") as status:
            return int(status.read().split("VmHWM:")[1].split()[0]) / 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
