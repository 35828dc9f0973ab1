# Two commands are all a newcomer needs: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SUDO   := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.PHONY: demo test check bench verify clean

# A fresh Debian or Ubuntu has python3 without venv: ask the system for it only when it is missing.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "topsecret needs Python 3.11 or newer; found $$($(PYTHON) --version). Set PYTHON=/path/to/python3.11."; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { $(SUDO) apt-get update -q && $(SUDO) apt-get install -y -q python3-venv; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --editable .
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --editable '.[accounting]' --group dev
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
	@$(BIN)/topsecret demo

test: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto

bench: $(VENV)/.test
	$(BIN)/pip install --quiet 'opendp==0.16.*'
	$(BIN)/python -m benchmarks

verify: $(VENV)/.demo
	$(BIN)/topsecret verify

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
