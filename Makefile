SHELL := /bin/bash
PORT ?= 8000
PYTHON ?= python3
PYTEST_ARGS ?=
ONLY ?=
export PYTHON

.PHONY: help demo demo-check test check bench api-description reference screenshots

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: ## the whole product on http://127.0.0.1:8000 with sample people (PORT= changes the port)
	@scripts/venv.sh sandbox
	@exec .venv/bin/python -m scripts.demo --port $(PORT)

demo-check: ## play the main job against a demo of its own, step by step
	@scripts/venv.sh sandbox
	@exec .venv/bin/python -m scripts.demo_check

test: ## every test, on a PostgreSQL, a Redis and a Chromium of its own
	@scripts/venv.sh dev
	@scripts/services.sh
	@exec .venv/bin/python -m pytest -n 2 --dist worksteal $(PYTEST_ARGS)

check: ## style, types, architecture, templates, migrations, API description, security, budgets
	@scripts/venv.sh dev
	@exec .venv/bin/python -m scripts.check

bench: ## how fast it is, as ratios against peers and floors of the same run (ONLY=B5 for one)
	@scripts/venv.sh dev
	@scripts/services.sh
	@exec .venv/bin/python -m bench --only "$(ONLY)"

api-description: ## write docs/reference/openapi.yaml anew from the code
	@scripts/venv.sh dev
	@exec .venv/bin/python -m scripts.api_description

reference: ## write the tables of docs/reference anew from the code
	@scripts/venv.sh dev
	@exec .venv/bin/python -m scripts.reference

screenshots: ## take the pictures of docs/images anew from a demo of its own
	@scripts/venv.sh dev
	@exec .venv/bin/python -m scripts.screenshots
