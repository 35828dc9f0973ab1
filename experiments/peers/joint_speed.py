"""CPU seconds of Google's joint exponential mechanism over d counts, from a checkout of dp_topk."""

import json
import statistics
import sys
import time

sys.path.insert(0, sys.argv[1])
import numpy as np
from dp_topk.differential_privacy import NeighborType
from dp_topk.joint import joint

d, k, rounds = int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
counts = (d / np.arange(1, d + 1)).astype(np.int64)
np.random.default_rng(7).shuffle(counts)
times = []
for _ in range(rounds):
    start = time.process_time()
    joint(counts, k, 1.0, NeighborType.ADD_REMOVE)
    times.append(time.process_time() - start)
print(json.dumps({"seconds": statistics.median(times)}))
