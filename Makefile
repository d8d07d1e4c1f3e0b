# `make demo` and `make test` are what a newcomer runs; everything else builds on the same environment.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

export DAGSTER_HOME := $(CURDIR)/dagster_home
# Threads of torch that spin while they wait starve every other process on a small machine.
export OMP_WAIT_POLICY := passive
export DO_NOT_TRACK := 1

.PHONY: demo test lint format bench ui notebook lock install clean

demo: $(STAMP) ## install, and map the demo clinic onto OMOP
	@$(BIN)/kgrag run demo_clinic

test: $(STAMP) ## the test suite
	$(BIN)/python -m pytest -q

lint: $(STAMP) ## style, types, and the order of the rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## measurements; see docs/evaluation.md and docs/benchmarks.md
	$(BIN)/python bench/evaluate_tasks.py
	$(BIN)/python bench/blocking.py
	$(BIN)/python bench/offline_judge.py
	$(BIN)/python bench/prompt_tokens.py
	$(BIN)/python bench/graph_search.py
	$(BIN)/python bench/graph_lifecycle.py
	$(BIN)/python bench/vector_index.py
	@# These two read public data beside the repository; --data and --graph name them elsewhere.
	$(BIN)/python bench/load_json.py
	$(BIN)/python bench/embedding.py

ui: $(STAMP) ## Dagster in the browser, http://127.0.0.1:3000
	$(BIN)/dagster dev -h 127.0.0.1

notebook: $(STAMP) ## the analyst's notebook in the browser
	$(BIN)/marimo run notebooks/mapping_review.py

install: $(STAMP)

$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || \
		{ echo "Python 3.11 is needed: set PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Making the environment in $(VENV): about two minutes, about 2 GB."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .
	@touch $(STAMP)

lock: ## write requirements.lock anew from pyproject.toml, in a fresh environment
	rm -rf $(VENV).lock && $(PYTHON) -m venv $(VENV).lock
	$(VENV).lock/bin/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	$(VENV).lock/bin/python -m pip freeze --exclude-editable | sed -E 's/\+cpu$$//' > requirements.lock
	rm -rf $(VENV).lock

clean: ## remove what runs wrote; input/ and the ledger of paid calls stay
	rm -rf data_lake/stages data_lake/locks data_lake/exports data_lake/kgrag.duckdb
	find dagster_home -mindepth 1 ! -name dagster.yaml -delete
