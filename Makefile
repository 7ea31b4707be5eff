# `make demo` trains a small policy and opens nothing but a report, `make test` checks everything, `make check` what a
# developer changed.
# Both need Python 3.11 or newer and make; what else they need goes into .venv, once.

PYTHON ?= python3
VENV ?= .venv
RUN ?= runs/demo
STUDY ?= runs/reproduction
RECIPE ?= tier-mini
# Where else pip may look, such as https://download.pytorch.org/whl/cpu for a torch without CUDA.
INDEX ?=
WORKERS ?= 2
SINCE ?= HEAD
KILLS ?= 100
BEGAN := $(shell date +%s)

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt \
       $(if $(INDEX),--extra-index-url $(INDEX))

# Tiny tensors gain nothing from threads, and two busy processes with many threads each lose a lot.
export OMP_NUM_THREADS ?= 1

.PHONY: help demo docs reproduce check test lint types tests lowest newest mutants chaos install clean

help:
	@echo "make demo    train a small policy from scratch on the CPU; the report ends up in $(RUN)/report.html"
	@echo "make docs    the documentation as a site with a search and a reference, in build/site"
	@echo "make reproduce    what the rewards do: every run of docs/reproduction.md, hours on two cores; goes on where it stopped"
	@echo "make check   lint, types, and the quick tests of what changed: under a minute"
	@echo "make test    lint, types and tests"
	@echo "make lowest  the tests of the base install with the lowest versions declared; make newest: on Python 3.13"
	@echo "make mutants would the tests notice? 300 small changes of walk, episodes, run folder and parsers; an hour"
	@echo "make chaos   100 kills, full disks, two owners, bad tools: is anything lost?"
	@echo "make clean   remove $(VENV) and every cache; runs stay"

demo: $(VENV)/.train
	$(BIN)/callwright run $(RECIPE) --output $(RUN)

docs: $(VENV)/.dev
	PYTHONPATH=docs NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "The site is in build/site. To read and search it: $(BIN)/python -m http.server -d build/site"

reproduce: $(VENV)/.train
	$(BIN)/python benchmarks/reproduce.py --output $(STUDY) --workers $(WORKERS)

check: $(VENV)/.dev
	@$(BIN)/python .ci/check $(SINCE)

# Types are checked on one core beside the tests, which three processes run: mypy alone would leave a core idle for a
# minute. What it says comes below what they say, and whatever fails, both come to their end.
test: SAID := $(VENV)/.types
test: lint
	@rm -f $(SAID); $(MAKE) --no-print-directory --keep-going --jobs=2 BEGAN=$(BEGAN) GOAL=$@ SAID=$(SAID) types tests; \
	    status=$$?; if [ -f $(SAID) ]; then cat $(SAID); fi; exit $$status

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache

types: $(VENV)/.dev
	$(BIN)/mypy$(if $(SAID), >$(SAID) 2>&1)

# Compiled first: the tests start the command a thousand times, and not every machine lets Python write what it compiled.
# One process more than there are to be busy: an eighth of their time tests wait, for processes of their own mostly.
tests: PROCESSES = $(if $(filter 1,$(WORKERS)),1,$(or $(shell expr $(WORKERS) + 1 2>/dev/null),$(WORKERS)))
tests: $(VENV)/.dev
	@$(BIN)/python -m compileall -q -j $(WORKERS) core plugins
	$(BIN)/python -m pytest -n $(PROCESSES) --dist worksteal && echo "$(or $(GOAL),$@): $$(($$(date +%s) - $(BEGAN))) s"

# What takes longer, or needs another environment, and therefore is run on purpose.
lowest:
	$(PYTHON) .ci/versions lowest --workers $(WORKERS)

newest:
	$(PYTHON) .ci/versions python3.13 --workers $(WORKERS)

mutants: $(VENV)/.dev
	$(BIN)/python benchmarks/mutation.py --workers $(WORKERS)

chaos: $(VENV)/.dev
	$(BIN)/python benchmarks/chaos.py --kills $(KILLS)

install: $(VENV)/.dev

# A stamp for each set of packages, so that nothing is installed again until the requirements change.
$(VENV)/.train: $(VENV)/.python pyproject.toml constraints.txt
	@echo "Installing Callwright with torch into $(VENV), a few minutes the first time …"
	@$(PIP) --editable '.[train]'
	@touch $@

$(VENV)/.dev: $(VENV)/.python pyproject.toml constraints.txt
	@echo "Installing Callwright with torch and the development tools into $(VENV), a few minutes the first time …"
	@$(PIP) --no-compile --editable '.[dev]'
	@$(BIN)/python -W ignore -m compileall -q -q -j $(WORKERS) $(VENV)/lib || true  # pip would do it in one process
	@touch $@ $(VENV)/.train

$(VENV)/.python:
	@command -v $(PYTHON) >/dev/null || { \
	    echo "There is no $(PYTHON). Install Python 3.11 or newer, or name one: make PYTHON=/path/to/python …" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "Callwright needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) -V 2>&1)." >&2; \
	    echo "Name a newer one: make PYTHON=python3.12 …" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	    echo "$(PYTHON) cannot make a virtual environment. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
