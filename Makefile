# `make` lists the targets. A Python of 3.11 or later and make are all that is needed beforehand.
#
#   PYTHON  the interpreter to build the environment with   (make test PYTHON=python3.12)
#   VENV    the environment to use; made if it is not there (make test VENV=/path/to/venv)
#   ARGS    further arguments to pytest, the demo, the experiments or the benchmarks
#           (make test ARGS="-k rbf")

PYTHON ?= python3
VENV ?= .venv
ARGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
INSTALLED := $(VENV)/.mercer-dev
INSTALLED_BENCH := $(VENV)/.mercer-bench
INSTALLED_DOCS := $(VENV)/.mercer-docs

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test slow paper lint types imports check bench docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(INSTALLED) ## compare Mercer with two peers on a small data set, and draw a picture
	@$(BIN)/python examples/demo.py $(ARGS)

# A process a core, each with one thread of BLAS; ARGS="-n 0" is one process, for a debugger.
test: $(INSTALLED) ## run the tests, but for those marked slow or paper
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 \
	    $(BIN)/python -m pytest -n auto -m "not slow and not paper" $(ARGS)

slow: $(INSTALLED_DOCS) ## run the tests marked slow
	$(BIN)/python -m pytest -m slow $(ARGS)

# ARGS="--quick" sees that all run; ARGS="abalone-gap" runs one (`mercer reproduce --list`).
paper: $(INSTALLED) ## repeat experiments of the papers on their data, into build/paper
	$(BIN)/python -m pytest -q -m paper
	$(BIN)/python -m mercer.cli reproduce --output build/paper --force $(ARGS)

lint: $(INSTALLED) ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED) ## check the types of the package
	$(BIN)/mypy

imports: $(INSTALLED) ## check that imports point down the layers
	$(BIN)/lint-imports

check: test lint types imports docs ## everything a change must pass

bench: $(INSTALLED_BENCH) ## run the benchmarks, alone on the machine, into benchmarks/RESULTS.md
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(INSTALLED_DOCS) ## build the documentation; open build/docs/index.html
	$(BIN)/python -m sphinx -j auto -q -W --keep-going -b html docs build/docs $(ARGS)
	@$(BIN)/python docs/check_site.py build/docs
	@echo "open build/docs/index.html"

clean: ## remove the environment, caches and outputs
	rm -rf .venv build dist demo-output docs/api docs/auto_examples .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# An environment that is already there is kept, whatever made it.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "Mercer needs Python 3.11 or later; $(PYTHON) is $$($(PYTHON) --version 2>&1 | head -n 1)." >&2; \
	    echo "Name a later one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "making the environment $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(INSTALLED): pyproject.toml | $(BIN)/python
	@echo "installing Mercer and its development tools into $(VENV) (once; a few minutes)"
	@$(PIP) -e '.[dev]'
	@touch $@

$(INSTALLED_BENCH): pyproject.toml | $(INSTALLED)
	@echo "installing the benchmarks' peers into $(VENV) (once)"
	@$(PIP) -e '.[bench]'
	@touch $@

$(INSTALLED_DOCS): pyproject.toml | $(INSTALLED)
	@echo "installing what builds the documentation into $(VENV) (once)"
	@$(PIP) -e '.[docs]'
	@touch $@
