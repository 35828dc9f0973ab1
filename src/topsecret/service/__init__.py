"""The service: private top lists for a team, in a browser and over HTTP.

A thin layer: it knows who may ask what, and leaves budgets to the ledger, previews to the plan and
answers to ``top_k``.
"""

from importlib.util import find_spec

from topsecret.errors import MissingExtra

_NEEDED = "argon2 fastapi jinja2 multipart platformdirs prometheus_client sqlalchemy uvicorn"

for _package in _NEEDED.split():
    if find_spec(_package) is None:
        raise MissingExtra("the service needs its extra: pip install '.[service]' in the checkout")
