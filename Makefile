# Two commands are all a newcomer needs: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SUDO   := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
APT    := $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get

.PHONY: demo demo-service test soak bench verify postgres chromium clean

# A fresh Debian or Ubuntu has python3 without venv: ask the system for it only when it is missing.
$(VENV)/.pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "topsecret needs Python 3.11 or newer; found $$($(PYTHON) --version 2>&1). Set PYTHON=/path/to/python3.11."; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { $(APT) update -q && $(APT) install -y -q python3-venv; } || \
	  { echo "Python's venv module is missing; install it (on Debian and Ubuntu: apt install python3-venv)."; exit 2; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.demo: pyproject.toml $(VENV)/.pip
	@echo "Installing topsecret into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.test: pyproject.toml $(VENV)/.pip
	@echo "Installing topsecret and its tests' tools into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --editable '.[accounting,ledger,plot,postgres,service]' --group dev
	@touch $(VENV)/.demo $(VENV)/.service $@

$(VENV)/.service: pyproject.toml $(VENV)/.pip
	@echo "Installing topsecret and its service into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --editable '.[service]'
	@touch $(VENV)/.demo $@

demo: $(VENV)/.demo
	@$(BIN)/topsecret demo

demo-service: $(VENV)/.service
	@$(BIN)/topsecret serve --demo

# The service's pages are tested in a real browser: ask the system for it only when it is missing.
chromium:
	@command -v chromium >/dev/null || \
	  { $(APT) update -q && $(APT) install -y -q --no-install-recommends chromium; } || \
	  { echo "Chromium is missing; install it (on Debian: apt install chromium)."; exit 2; }

# The ledger is tested on a real PostgreSQL: ask the system for it only when it is missing.
postgres:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || \
	  { $(APT) update -q && $(APT) install -y -q --no-install-recommends postgresql; } || \
	  { echo "PostgreSQL is missing; install it (on Debian and Ubuntu: apt install postgresql)."; exit 2; }

test: $(VENV)/.test postgres chromium
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto

soak: $(VENV)/.test postgres
	TOPSECRET_SOAK=1 $(BIN)/python -m pytest tests/service/test_crash.py

bench: $(VENV)/.test
	$(BIN)/python -m pip install --quiet 'opendp==0.16.*'
	$(BIN)/python -m benchmarks

verify: $(VENV)/.demo
	$(BIN)/topsecret verify

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist build demo
