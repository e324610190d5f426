# Every target sets itself up: the tools live in a virtual environment, built on first use from the
# constraints, and the package is installed there as its users install it. Needed are make, a network
# and Python 3.11 or later: `make test PYTHON=python3.13` takes another than python3.

PYTHON ?= python3
VENV := .venv
CONSTRAINTS := constraints.txt

BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
RUN := $(BIN)/python -m
PIP := $(RUN) pip install -qq --disable-pip-version-check
# Directories too: they change when a file goes.
SOURCES := $(shell find src -not -path '*/__pycache__*')
# Without coverage, which takes half as long again as these tests of what others cover.
SHARED := tests/adopted tests/benchmarks tests/suites
COMPILED := tests/kernels tests/solvers tests/structured/inference

# What the caller has on this path must not stand in for the installed package.
unexport PYTHONPATH

.PHONY: help demo test test-all test-slow test-interpreted test-bounds test-oldest lint dist docs clean

help: ## list what make can do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s%s\n", $$1, $$2 }' Makefile

demo: .venv-demo/package ## train on included and generated data beside scikit-learn; write a report
	$(subst $(VENV),.venv-demo,$(BIN))/widemargin demo --output build/demo

test: $(VENV)/package ## run all tests but the slow ones, in two processes, and print coverage
	$(RUN) pytest -n 2 --dist worksteal $(SHARED)
	$(RUN) pytest -n 2 --dist worksteal --cov --cov-report= --cov-fail-under=0 $(SHARED:%=--ignore=%)
	NUMBA_DISABLE_JIT=1 $(RUN) pytest -q -n 2 --dist worksteal -m "not slow and not large and not hypothesis" --cov --cov-append --cov-report= --cov-fail-under=0 $(COMPILED)
	$(RUN) coverage report

test-all: test test-slow test-interpreted test-bounds test-oldest ## run the slow lanes too

test-slow: $(VENV)/package ## run the tests marked slow, and those of properties on new random cases
	$(RUN) pytest -n 2 -m slow
	$(RUN) pytest -n 2 -m "hypothesis and not slow" --hypothesis-profile=random

test-interpreted: $(VENV)/package ## run the compiled code as plain Python
	NUMBA_DISABLE_JIT=1 $(RUN) pytest -n 2 -m "not slow and not large" $(COMPILED)

test-bounds: $(VENV)/package ## run the compiled code with array bounds checked
	rm -rf $(VENV)/bounds
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)/bounds $(RUN) pytest -n 2 $(COMPILED)

test-oldest: ## run the tests on Python 3.11 with the oldest supported dependencies
	$(MAKE) test PYTHON=python3.11 VENV=.venv-oldest CONSTRAINTS=constraints-oldest.txt

lint: $(VENV)/package ## check format, style, types and the import contract
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) mypy
	$(BIN)/lint-imports

dist: $(VENV)/dependencies ## build the source distribution and the wheel into dist
	$(BIN)/hatchling build

docs: $(VENV)/package ## build the documentation into docs/_build/html, and check its pages
	$(RUN) sphinx -W --keep-going -b html docs docs/_build/html
	$(RUN) pytest -q tests/test_built_pages.py

clean: ## remove all that make has made
	rm -rf .venv .venv-demo .venv-oldest build dist docs/_build docs/gallery docs/api docs/_inventories
	rm -f docs/sg_execution_times.rst docs/performance_*.inc docs/clients_table.inc docs/changes.inc

$(VENV)/dependencies: pyproject.toml $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	    f"widemargin needs Python 3.11 or later, $(PYTHON) is {sys.version.split()[0]}: make ... PYTHON=...")'
	@echo "Setting up $(VENV) with $(CONSTRAINTS): a few minutes the first time ..."
	$(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=$(CONSTRAINTS) $(PIP) '.[dev]'
	@touch $@

# What users install for the command line, and nothing for development.
.venv-demo/package: $(SOURCES) pyproject.toml $(CONSTRAINTS) README.md LICENSE
	@echo "Setting up .venv-demo: a minute the first time ..."
	$(PYTHON) -m venv .venv-demo
	PIP_CONSTRAINT=$(CONSTRAINTS) $(subst $(VENV),.venv-demo,$(PIP)) '.[cli]'
	$(subst $(VENV),.venv-demo,$(PIP)) --no-deps --force-reinstall .
	@touch $@

$(VENV)/package: $(VENV)/dependencies $(SOURCES) README.md LICENSE
	@echo "Installing widemargin into $(VENV) ..."
	$(PIP) --no-deps --no-build-isolation --force-reinstall .
	@touch $@
