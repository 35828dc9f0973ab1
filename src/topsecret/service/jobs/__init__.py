"""Questions as jobs: the queue, the worker that answers, when the ledger hears of the end."""
