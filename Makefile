# The commands of this project. Needs make and Python 3.11 or newer (with its venv module).
#
# Variables: PYTHON          the interpreter that .venv is made with
#            PYTEST_WORKERS  processes that run tests side by side
#            PYTEST_ARGS     further arguments for pytest, say PYTEST_ARGS='-k claim'
#            ARGS            further arguments for the demo and the benchmark

PYTHON         ?= $(firstword $(foreach name,python3 python3.14 python3.13 python3.12 python3.11,$(shell $(name) -c 'import sys; sys.version_info >= (3, 11) and print("$(name)")' 2>/dev/null)) python3)
PYTEST_WORKERS ?= 4
PYTEST_ARGS    ?=
ARGS           ?=

# Branch coverage in percent: the core's is a rule, the whole package's only rises.
COVERAGE_CORE    = 100
COVERAGE_PACKAGE = 85

VENV      = .venv
PY        = $(VENV)/bin/python
INSTALLED = $(VENV)/.installed

SHELL         = /bin/sh
.DEFAULT_GOAL = help
.NOTPARALLEL:

# $(call step,NAME,COMMAND): run one step; where it fails, end with one line that names it.
define step
@printf '\n== %s\n' '$(1)'
@$(2) || { printf '\nmake $@: FAILED at: %s\n' '$(1)'; exit 1; }
endef

.PHONY: help
help: ## Show the targets
	@echo 'Targets:'
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'

.PHONY: demo
demo: $(INSTALLED) ## Run the example shop on SQLite, from the first order to the last job
	$(call step,example shop,$(PY) example_project/manage.py demo $(ARGS))
	@printf '\nmake demo: done\n'

.PHONY: test
test: $(INSTALLED) ## Run lint, types, import contracts and all tests on SQLite and PostgreSQL
	$(lint-steps)
	@rm -rf .cache/coverage && mkdir -p .cache/coverage
	$(call step,tests,$(PY) -m coverage run -m pytest -n $(PYTEST_WORKERS) $(PYTEST_ARGS))
	@$(PY) -m coverage combine --quiet
	$(call step,branch coverage of the package ($(COVERAGE_PACKAGE) %),$(PY) -m coverage report --fail-under=$(COVERAGE_PACKAGE))
	$(call step,branch coverage of the core ($(COVERAGE_CORE) %),$(PY) -m coverage report --include='backwave_django/core/*' --fail-under=$(COVERAGE_CORE))
	@printf '\nmake test: all green (lint, types, import contracts, tests on SQLite and PostgreSQL, coverage)\n'

.PHONY: test-long
test-long: $(INSTALLED) ## Run the tests that take long
	$(call step,long tests,$(PY) -m pytest -m long --timeout=7200 -n $(PYTEST_WORKERS) $(PYTEST_ARGS))
	@printf '\nmake test-long: all green\n'

define lint-steps
$(call step,ruff check,$(PY) -m ruff check .)
$(call step,ruff format,$(PY) -m ruff format --check .)
$(call step,mypy,$(PY) -m mypy)
$(call step,import contracts,$(VENV)/bin/lint-imports --cache-dir .cache/import-linter)
endef

.PHONY: lint
lint: $(INSTALLED) ## Run lint, types and import contracts only
	$(lint-steps)
	@printf '\nmake lint: all green\n'

.PHONY: bench
bench: $(INSTALLED) ## Measure enqueueing and draining
	$(call step,benchmark,$(PY) example_project/manage.py backwave_bench $(ARGS))
	@printf '\nmake bench: done\n'

.PHONY: clean
clean: ## Remove all that make has made, .venv too
	@rm -rf $(VENV) .cache build dist .hypothesis .nox .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo 'make clean: done'

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo 'make: Python 3.11 or newer is needed; name one by PYTHON=/path/to/python3'; exit 1; }
	@$(PY) -c 'import pip' 2>/dev/null || { \
		rm -rf $(VENV); echo 'Making $(VENV) with $(PYTHON) ...'; \
		$(PYTHON) -m venv $(VENV) || { \
			rm -rf $(VENV); \
			echo 'make: no virtual environment; install the venv module (Debian, Ubuntu: python3-venv)'; exit 1; }; }
	@echo 'Installing into $(VENV), once ...'
	@$(PY) -m pip install --quiet --disable-pip-version-check -e '.[dev]' || { \
		echo 'make: the installation failed; see above'; exit 1; }
	@touch $@
