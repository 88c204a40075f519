# Every target sets up what it needs: a virtual environment in .venv, programs in .tools.
# Nothing is installed into the system and nothing needs root.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One more than there are cores: many tests wait for servers.
WORKERS ?= $(shell expr $$(nproc 2>/dev/null || echo 2) + 1)
DEMO_PROGRAMS := redis-server weed restic
PROGRAMS := git rg $(DEMO_PROGRAMS) restic-0.14 restic-0.18
PYTEST := PATH="$(CURDIR)/.tools/bin:$$PATH" $(BIN)/pytest -n $(WORKERS) --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help dev demo check lint fmt type layers test test-long tools bench docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

dev: $(STAMP) ## create .venv and install purge with everything for working on it

$(STAMP): pyproject.toml tests/setup/bootstrap.py
	$(PYTHON) tests/setup/bootstrap.py $(VENV)
	@touch $@

demo: $(STAMP) ## build a sandbox of real stores, purge an item from it, print the report
	@$(BIN)/python tests/setup/tools.py --quiet $(DEMO_PROGRAMS)
	@PATH="$(CURDIR)/.tools/bin:$$PATH" $(BIN)/purge demo

check: lint type layers ## ruff, mypy --strict, import-linter

lint: $(STAMP) ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

fmt: $(STAMP) ## let ruff mend and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

type: $(STAMP) ## mypy --strict over sources and tests
	$(BIN)/mypy

layers: $(STAMP) ## import-linter: imports go downward only
	$(BIN)/lint-imports

test: $(STAMP) tools ## all but the long tests (under 10 minutes)
	$(PYTEST) -m "not long"

test-long: $(STAMP) tools ## the long tests only
	$(PYTEST) -m long

tools: $(STAMP) ## fetch the programs that tests need and the system lacks, into .tools
	$(BIN)/python tests/setup/tools.py $(PROGRAMS)

bench: $(STAMP) ## benchmarks; prints ratios, asserts nothing
	$(BIN)/python -m tests.bench

docs: $(STAMP) tools ## write the parts of the documentation that are made from the program
	PATH="$(CURDIR)/.tools/bin:$$PATH" $(BIN)/python -m tests.docs.generate

clean: ## remove .venv, .tools and caches
	rm -rf $(VENV) .tools dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
