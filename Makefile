# Needs Python 3.11 or newer and make; everything else is installed here, in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format docs build sizes slow bench

help: ## show what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "gapless needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 | tail -n 1)." \
	  "Try: make PYTHON=python3.12" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo "Installing gapless and its tools in $(VENV): a minute or two, once."
	$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[train,formats,dev]'
	@touch $@

setup: $(STAMP) ## install gapless and its tools in .venv

demo: $(STAMP) ## run the whole loop on a bundled example
	$(BIN)/gapless demo

check: $(STAMP) ## lint, format, import direction, types
	$(BIN)/ruff check --output-format concise .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/pyright --threads $(JOBS) src

test: check ## check, then every fast test
	$(BIN)/python -m pytest -n $(JOBS) -m "not slow and not bench"

sizes: $(STAMP) ## what is large enough to ask for a second look in review
	PYTHONPATH=tests $(BIN)/python -m architecture.sizes

slow: $(STAMP) ## the tests that take minutes
	$(BIN)/python -m pytest -n $(JOBS) -m "slow and not bench" || test $$? -eq 5  # 5: there are none

bench: $(STAMP) ## speed, and accuracy against peers: the better part of an hour
	$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[peer]'
	$(BIN)/python -m pytest -m bench tests $(wildcard benchmarks) || test $$? -eq 5

format: $(STAMP) ## rewrite the code in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(STAMP) ## links and commands named in the documents exist
	$(BIN)/python -m pytest tests/architecture/test_docs.py

build: $(STAMP) ## build the wheel and try it outside this tree
	rm -rf build dist
	$(BIN)/python -m build --wheel --outdir dist
	rm -rf build
	set -e; place=$$(mktemp -d); trap 'rm -rf "$$place"' EXIT; \
	  $(BIN)/python -m venv "$$place/venv"; \
	  "$$place/venv/bin/python" -m pip install -qq --disable-pip-version-check -c constraints.txt dist/*.whl; \
	  cd "$$place"; venv/bin/gapless --help; venv/bin/gapless --version
