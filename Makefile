# Two commands are all a newcomer needs: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SUDO   := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
# Modules are compiled when they are first imported, which most never are.
LOCKED := --quiet --no-compile --disable-pip-version-check --constraint constraints.txt --build-constraint constraints.txt
# What is compiled is kept: the tests start hundreds of processes, and each would compile it anew.
export PYTHONDONTWRITEBYTECODE :=
APT    := $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get

.PHONY: release coverage pictures demo demo-service test newest lowest lock bare docs soak bench verify reproduce postgres chromium curl nginx java clean

# A fresh Debian or Ubuntu has python3 without venv: ask the system for it only when it is missing.
$(VENV)/.pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "topsecret needs Python 3.11 or newer; found $$($(PYTHON) --version 2>&1). Set PYTHON=/path/to/python3.11."; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { $(APT) update -q && $(APT) install -y -q python3-venv; } || \
	  { echo "Python's venv module is missing; install it (on Debian and Ubuntu: apt install python3-venv)."; exit 2; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --constraint constraints.txt pip
	@touch $@

$(VENV)/.demo: pyproject.toml constraints.txt $(VENV)/.pip
	@echo "Installing topsecret into $(VENV) …"
	@$(BIN)/python -m pip install $(LOCKED) --editable .
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt $(VENV)/.pip
	@echo "Installing topsecret and its tests' tools into $(VENV) …"
	@$(BIN)/python -m pip install $(LOCKED) --editable '.[all]' --group dev --group docs
	@touch $(VENV)/.demo $(VENV)/.service $@

$(VENV)/.service: pyproject.toml constraints.txt $(VENV)/.pip
	@echo "Installing topsecret and its service into $(VENV) …"
	@$(BIN)/python -m pip install $(LOCKED) --editable '.[service]'
	@touch $(VENV)/.demo $@

demo: $(VENV)/.demo
	@$(BIN)/topsecret demo

demo-service: $(VENV)/.service
	@$(BIN)/topsecret serve --demo

# The service's pages are tested in a real browser: ask the system for it only when it is missing.
# What drives it is linked to libatomic, which a bare Debian 12 lacks.
chromium:
	@{ command -v chromium && ls /usr/lib/*/libatomic.so.1 /usr/lib/libatomic.so.1; } 2>/dev/null | grep -q atomic || \
	  { $(APT) update -q && $(APT) install -y -q --no-install-recommends chromium libatomic1; } || \
	  { echo "Chromium is missing; install it (on Debian: apt install chromium libatomic1)."; exit 2; }

# The service's page of the documentation is run as it stands, and it asks with curl.
curl:
	@command -v curl >/dev/null || \
	  { $(APT) update -q && $(APT) install -y -q --no-install-recommends curl; } || \
	  { echo "curl is missing; install it (on Debian: apt install curl)."; exit 2; }

# The proxy of the service's page is run, too, without the server that Debian's package may start.
nginx:
	@command -v nginx >/dev/null || ls /usr/sbin/nginx >/dev/null 2>&1 || \
	  { $(APT) update -q && $(APT) install -y -q --no-install-recommends nginx; } || \
	  { echo "nginx is missing; install it (on Debian and Ubuntu: apt install nginx)."; exit 2; }

# The ledger is tested on a real PostgreSQL: ask the system for it only when it is missing.
postgres:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || \
	  { $(APT) update -q && $(APT) install -y -q --no-install-recommends postgresql; } || \
	  { echo "PostgreSQL is missing; install it (on Debian and Ubuntu: apt install postgresql)."; exit 2; }

# Spark needs Java 17 or newer; Debian 12 has 17, Debian 13 has 21, Ubuntu may have 11 by default.
java:
	@java -version 2>&1 | grep -Eq 'version "(1[7-9]|[2-9][0-9])' || \
	  { $(APT) update -q && for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do \
	    $(APT) install -y -q --no-install-recommends $$package && break; done; }; \
	  java -version 2>&1 | grep -Eq 'version "(1[7-9]|[2-9][0-9])' || \
	  { echo "Java 17 or newer is missing; install it (on Debian: apt install default-jre-headless)."; exit 2; }

# Types are checked on one core; on the other the tests are compiled meanwhile, once for all of their
# processes. What is wrong with a test is told when they run.
test: $(VENV)/.test postgres chromium curl nginx java
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest --collect-only --quiet >/dev/null 2>&1 & $(BIN)/mypy; code=$$?; wait; exit $$code
	$(BIN)/python -m pytest -n auto

# The same tests with the newest and with the lowest versions that pyproject.toml allows.
newest: postgres chromium curl nginx java
	$(PYTHON) -m venv --clear .venv-newest
	.venv-newest/bin/python -m pip install --quiet --upgrade pip
	.venv-newest/bin/python -m pip install --quiet --editable '.[all]' --group dev --group docs
	.venv-newest/bin/python -m pytest -n auto

lowest: postgres chromium curl nginx java
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct \
	  --editable '.[all]' --group dev --group docs
	.venv-lowest/bin/python -m pytest -n auto

# What `make newest` tried becomes what `make test` installs, for this Python.
lock:
	.ci/lock .venv-newest/bin/python constraints.txt

# demo and test on minimal Debian 12 and 13 roots, where nothing is installed.
bare:
	.ci/bare

# New cases and new noise, round after round: each begins with the seed that repeats it
# (python -m pytest --hypothesis-seed=SEED). A failure found here becomes a fixed @example. Then
# 10,000 pairs of neighbours on every engine, and 20,000 of pasted queries; then 2,000 requests of 64 clients with random kills of workers and of the PostgreSQL server; then 100
# questions to the service whose workers are killed, and more requests by its own schema. Spark
# compiles its queries there, as a user's does.
ROUNDS ?= 10
soak: $(VENV)/.test postgres java
	for round in $$(seq $(ROUNDS)); do \
	  seed=$$($(BIN)/python -c 'import secrets; print(secrets.randbits(64))'); echo "seed $$seed"; \
	  $(BIN)/python -m pytest -n auto -m hypothesis --hypothesis-seed=$$seed || exit 1; done
	$(BIN)/python -m pytest -n auto tests/sources/fuzz_soak.py tests/sources/relations/owned_rows_soak.py
	$(BIN)/python -m pytest tests/ledger/soak.py
	TOPSECRET_SOAK=1 $(BIN)/python -m pytest -n auto -m soak
	TOPSECRET_SOAK=1 $(BIN)/python -m pytest -m spark
	TOPSECRET_SOAK=1 $(BIN)/python -m pytest tests/service/test_crash.py tests/service/test_schedules.py tests/questions/test_series_counts.py tests/service/test_schema.py

# The site, in site/: open site/index.html, or serve the folder to have the search. A warning is an error.
docs: $(VENV)/.test
	$(BIN)/python docs/pictures/draw.py
	$(BIN)/python docs/site/commands.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# The README's pictures of an answer and of the service, taken from the real thing.
pictures: $(VENV)/.test chromium
	$(BIN)/python docs/pictures/photograph.py

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks

reproduce: $(VENV)/.test
	$(BIN)/python -m pip install --quiet 'opendp==0.16.*' 'matplotlib>=3.10.8' 'scikit-learn>=1.4'
	$(BIN)/python -m experiments --processes 2

verify: $(VENV)/.demo
	$(BIN)/topsecret verify

# From a clean tree whose version has a section in the changelog and no tag yet: builds the sdist
# and the wheel, tries them as a stranger would, and tags the commit. Nothing is published.
release: $(VENV)/.test
	@test -z "$$(git status --porcelain)" || { echo "commit or remove what git status shows first."; exit 2; }
	@version=$$($(BIN)/python -c 'import topsecret; print(topsecret.__version__)'); \
	  case $$version in *dev*) echo "version $$version is none to release."; exit 2;; esac; \
	  grep -q "^## $$version" CHANGELOG.md || { echo "CHANGELOG.md has no section $$version."; exit 2; }; \
	  ! git rev-parse -q --verify "refs/tags/v$$version" >/dev/null || { echo "v$$version has a tag already."; exit 2; }
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python -m pytest -q tests/test_packaging.py
	version=$$($(BIN)/python -c 'import topsecret; print(topsecret.__version__)'); \
	  git tag -a "v$$version" -m "topsecret $$version" && ls dist

# Which lines the tests reach; the service and Spark run in processes of their own.
coverage: $(VENV)/.test
	$(BIN)/python -m pip install --quiet 'coverage>=7'
	$(BIN)/python -m coverage run --source src/topsecret -m pytest -q -m 'not spark' --ignore tests/service --ignore tests/experiments
	$(BIN)/python -m coverage report --skip-covered --sort=cover

clean:
	rm -rf $(VENV) .venv-newest .venv-lowest .mypy_cache .pytest_cache .ruff_cache .hypothesis dist build demo site
