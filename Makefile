# Every target sets up what it needs; a set-up that is up to date costs well under a second.

.DEFAULT_GOAL := help
.PHONY: help setup up demo story test soak check bench bench-setup client lock clean

# The newest of these that is at least 3.11; python3 first, because that is the one people expect.
PYTHON := $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
RUN := .venv/bin/python
SETUP = @test -n "$(PYTHON)" || { echo "Veneer needs Python 3.11 or newer; none of python3, python3.11, python3.12, python3.13 is." >&2; exit 1; }; \
	$(PYTHON) -m setup
NPM = $(RUN) -m setup.npm
# A file's tests stay together, in the order of the folders: the longest are not left for the end.
SIDE_BY_SIDE = --numprocesses 2 --dist loadfile --no-loadscope-reorder
MODEL = $(or $(VENEER_MODEL),$(or $(VENEER_HOME),.veneer)/models/SmolLM2-135M-Instruct)

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

setup:  ## install everything that the stack needs
	$(SETUP)

up:  ## run the whole stack on this machine until Ctrl-C
	$(SETUP)
	@exec $(RUN) manage.py up

demo:  ## tell the whole story without hands, in a throw-away home
	$(SETUP) --dev --browser
	@exec $(RUN) manage.py demo $(DEMO)

story:  ## a month of four tenants' traffic, for the stack that is up
	$(SETUP)
	@exec $(RUN) manage.py seed_story $(STORY)

test:  ## every test, against real PostgreSQL and Valkey, with a real browser
	$(SETUP) --dev --browser
	$(RUN) -m pytest -rs $(SIDE_BY_SIDE) $(PYTEST)
	$(NPM) run test

soak:  ## 2,000 runs of the books' simulator; RUNS=n for another number
	$(SETUP) --dev
	VENEER_BOOKS_RUNS=$(or $(RUNS),2000) $(RUN) -m pytest -s tests/books

check:  ## style, types, import contracts, schema, migrations, frontend
	$(SETUP) --dev
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	PYTHONPATH=platform .venv/bin/lint-imports
	$(RUN) manage.py spectacular --fail-on-warn --validate --file /dev/null
	$(RUN) -m pytest tests/controlplane/test_migrations.py
	$(NPM) run typecheck
	$(NPM) run lint

bench:  ## Veneer and its peers on the same work, then speculation; under 20 minutes
	$(SETUP)
	OMP_WAIT_POLICY=passive $(RUN) -m benchmarks.peers $(MODEL) --results benchmarks/results $(BENCH)
	OMP_WAIT_POLICY=passive $(RUN) -m benchmarks.speculation $(MODEL) --quick

bench-setup:  ## build those peers, each in an environment of its own
	$(SETUP)
	$(RUN) -m benchmarks.peers_setup $(PEERS)

client:  ## renew the types of client/ after the management API has changed
	$(SETUP) --dev
	$(RUN) -m setup.client_models

lock:  ## renew requirements/*.txt from pyproject.toml
	$(SETUP) --dev
	$(RUN) -m setup.lock

clean:  ## remove builds and caches; the data in .veneer stays
	rm -rf .venv frontend/dist frontend/node_modules .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
