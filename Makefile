# A menu. What a line does stands in tools/, so that it can be read, tested and run without make.
# ARGS goes to the command behind the target:  make up ARGS="--port 9000 --nodes-per-zone 2"   make unit ARGS="-k number"
.DEFAULT_GOAL := help
.PHONY: help up test test-full lint types unit property integration conformance fuzz parity test-clients test-compose simulation sim sim-mutants chaos chaos-regions bench bench-peers proto generated clean

READY_TO_RUN := .venv/.ready-to-run
READY_TO_DEVELOP := .venv/.ready-to-develop

help:                              ## this list
	@tools/help $(MAKEFILE_LIST)

up: $(READY_TO_RUN)                ## start a cluster on this machine and stay in the foreground
	@.venv/bin/trizone up $(ARGS)

test: $(READY_TO_DEVELOP)          ## what must pass before a commit: all tests but the slow ones
	tools/test standard $(ARGS)

test-full: $(READY_TO_DEVELOP)     ## all tests, the slow ones too
	tools/test full $(ARGS)

lint: $(READY_TO_DEVELOP)          ## ruff: rules and format
	tools/lint

types: $(READY_TO_DEVELOP)         ## mypy, strict
	tools/types

unit: $(READY_TO_DEVELOP)          ## one part at a time, and the house rules
	tools/test unit $(ARGS)

property: $(READY_TO_DEVELOP)      ## properties over random input
	tools/test property $(ARGS)

integration: $(READY_TO_DEVELOP)   ## real processes on this machine
	tools/test integration $(ARGS)

conformance: $(READY_TO_DEVELOP)   ## boto3 against an endpoint; ARGS="--url URL" for one that runs already
	tools/test conformance $(ARGS)

test-clients: $(READY_TO_DEVELOP)  ## boto3, AWS CLI, lib-dynamodb, PynamoDB and others, each in an environment of its own
	tools/test clients $(ARGS)

fuzz: $(READY_TO_DEVELOP)          ## arbitrary bytes against HTTP, JSON, expressions and keys: SECONDS=600
	.venv/bin/python -m tests.fuzz $(or $(SECONDS),60) $(ARGS)

parity: $(READY_TO_DEVELOP)        ## the Parity Suite against a fresh cluster: PARITY_DIR=its directory, packages installed
	@.venv/bin/python tools/parity.py $(PARITY_DIR) $(ARGS)

simulation: $(READY_TO_DEVELOP)    ## a cluster under virtual time, network and disk
	tools/test simulation $(ARGS)

sim: $(READY_TO_DEVELOP)           ## many seeds of it: make sim SEED=first SEEDS=count JOBS=processes ARGS="--scenario regions"
	tools/sim seeds $(or $(SEED),1) $(or $(SEEDS),20) --workers $(or $(JOBS),2) $(ARGS)

sim-mutants: $(READY_TO_DEVELOP)   ## broken rules that the simulation must find
	tools/sim mutants $(ARGS)

chaos: $(READY_TO_DEVELOP)         ## killed and frozen processes under load; ARGS="-m slow --report DIR" for the long form
	tools/test chaos $(ARGS)

chaos-regions: $(READY_TO_DEVELOP) ## two regions that die and come back under load; ARGS="-k many_deaths" for the long form
	tools/test chaos-regions $(ARGS)

test-compose: $(READY_TO_DEVELOP)  ## deploy/compose.yaml in a container engine of its own; ARGS="-m slow" for more
	tools/test-compose $(ARGS)

bench-peers: $(READY_TO_DEVELOP)   ## the same beside other servers of the API, which it installs; writes bench/results/
	.venv/bin/python -m bench.peers $(ARGS)

bench: $(READY_TO_DEVELOP)         ## requests per second, latency and CPU per request
	tools/bench $(ARGS)

proto: $(READY_TO_DEVELOP)         ## generate cluster/wire/ from proto/
	tools/proto

generated: $(READY_TO_DEVELOP)     ## docs/configuration.md and deploy/kubernetes/monitoring.yaml from what they tell of
	.venv/bin/python tools/configuration.py
	.venv/bin/python tools/kubernetes_rules.py

clean:                             ## remove what the tools made; keeps data
	tools/clean

$(READY_TO_RUN): pyproject.toml
	tools/install run

$(READY_TO_DEVELOP): pyproject.toml
	tools/install develop
