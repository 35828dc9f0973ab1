"""Run experiments: ``python -m experiments`` for all, ``python -m experiments E1 E4`` for some."""

import sys

from experiments.run import main

# A process of the pool does not see this module, so that all work is in ``run``.
if __name__ == "__main__":
    sys.exit(main())
