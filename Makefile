SHELL := /bin/bash
PORT ?= 8000
# Empty for the one that scripts/python.sh chooses.
PYTHON ?=
PYTEST_ARGS ?=
ONLY ?=
GIT ?=
CONTEXT ?=
# Only what is asked for on the command line: a cluster that happens to be at hand is nobody's test bed.
override KUBECONFIG := $(if $(filter command line,$(origin KUBECONFIG)),$(KUBECONFIG))
unexport KUBECONFIG
# Without byte code each process compiles all of it anew, and the tests start many.
unexport PYTHONDONTWRITEBYTECODE
ITERATIONS ?= 1000
SEED ?=
FIRST ?= 0
export PYTHON ITERATIONS SEED FIRST

.PHONY: help demo demo-check test test-slow soak faults mutants check bench live-test api-description reference screenshots

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: ## the whole product on http://127.0.0.1:8000 with sample people (PORT= changes the port, GIT=1 adds Git)
	@scripts/venv.sh sandbox
	@exec .venv/bin/python -m scripts.demo --port $(PORT) $(if $(GIT),--git)

demo-check: ## play the main job against a demo of its own, step by step
	@scripts/venv.sh sandbox
	@exec .venv/bin/python -m scripts.demo_check

# One process more than there are cores where two are: while a test waits for a server of its own, another one goes on.
test: ## every quick test, on a PostgreSQL and a Redis of its own
	@scripts/venv.sh dev
	@scripts/services.sh
	@exec .venv/bin/python -m pytest -n 3 --dist worksteal -m "not slow and not long" --durations=15 --durations-min=1 $(PYTEST_ARGS)

test-slow: ## the other tests: browsers, processes that are killed, wrong clocks, crowds, thousands of rows, walks through all pages, whatever takes long
	@scripts/venv.sh dev
	@scripts/services.sh
	@scripts/hub.sh
	@scripts/backstage.sh
	@exec .venv/bin/python -m pytest -n 2 --dist worksteal -m "slow and not long" $(PYTEST_ARGS)

soak: ## a long random walk of operations and faults, checked after each iteration (ITERATIONS= SEED= FIRST=)
	@scripts/venv.sh dev
	@scripts/services.sh
	@exec .venv/bin/python -m pytest -m long -s -p no:randomly tests/soak

faults: ## every fault test and the API's made-up calls, those that take minutes too
	@scripts/venv.sh dev
	@scripts/services.sh
	@HYPOTHESIS_PROFILE=exploring exec .venv/bin/python -m pytest -m "long or not long" tests/faults tests/concurrency tests/portal/test_schemathesis.py $(PYTEST_ARGS)

mutants: ## which small changes of the pure core its own tests do not notice (ONLY=policy/rules.py for one module)
	@scripts/venv.sh dev
	@exec .venv/bin/python -m scripts.mutants --only "$(ONLY)"

check: ## style, types, architecture, templates, migrations, API description, security
	@scripts/venv.sh dev
	@exec .venv/bin/python -m scripts.check

bench: ## how fast it is, as ratios against peers and floors of the same run (ONLY=B5 for one)
	@scripts/venv.sh dev
	@scripts/services.sh
	@exec .venv/bin/python -m bench --only "$(ONLY)"

live-test: ## the contract suite and the main job on a cluster with Kueue (KUBECONFIG=…, CONTEXT=…); the sandbox without
	@scripts/venv.sh dev
	@scripts/services.sh
	@exec .venv/bin/python -m scripts.live_test --kubeconfig "$(KUBECONFIG)" --context "$(CONTEXT)"

api-description: ## write docs/reference/openapi.yaml anew from the code
	@scripts/venv.sh dev
	@exec .venv/bin/python -m scripts.api_description

reference: ## write the tables of docs/reference anew from the code
	@scripts/venv.sh dev
	@exec .venv/bin/python -m scripts.reference

screenshots: ## take the pictures of docs/images anew from a demo of its own
	@scripts/venv.sh dev
	@exec .venv/bin/python -m scripts.screenshots
