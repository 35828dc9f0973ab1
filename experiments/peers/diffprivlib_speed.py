"""CPU seconds of k peeled picks by diffprivlib's exponential mechanism over d counts."""

import json
import sys
import time

from diffprivlib.mechanisms import Exponential

d, k, epsilon_per_pick = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
counts = [d // rank for rank in range(1, d + 1)]
start = time.process_time()
names, left = list(range(d)), counts[:]
picked = []
for _ in range(k):
    mechanism = Exponential(
        epsilon=epsilon_per_pick, sensitivity=1, utility=left, candidates=names, monotonic=True
    )
    place = names.index(mechanism.randomise())
    picked.append(names.pop(place))
    left.pop(place)
print(json.dumps({"seconds": time.process_time() - start, "picked": len(picked)}))
