# make test    sets everything up and passes all checks
# make check   format, lint, types, imports and the conformance register: a minute
# make run     sets everything up and runs a queue manager with samples and a pipeline, until Ctrl-C
# make bench   measures, in ratios, the plain and the compiled build
# make fuzz    fuzzes codec, sessions, exchange and application server for SECONDS each (default 60)
# make hostile strangers attack two services for SECONDS (default 600) with KILLS kills (default 100)
# make soak    COUNT messages (default 1000000) between two services that are cut off and killed
# make cluster pipelines on a real standalone cluster of Spark, some of it killed
# make chaos   KILLS kills (default 20) of everything that two Spark streams on a cluster consist of
# make mutants SAMPLE mutants a package (default 300, or all) by SEED, in PACKAGE or all of them
# make lock    writes the lock files anew from pyproject.toml
# make docs    writes the generated pages anew
# make clean   removes what the others made

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
PEERS := .build/peers
RESULTS := .build/conformance
SECONDS ?= 60
COUNT ?= 1000000
KILLS ?= 20
SAMPLE ?= 300

INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps

# The first Python on the machine that is new enough; name another with make PYTHON=...
PYTHON ?= $(shell for each in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$each -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$each && break; \
	done)

.PHONY: help setup java perhaps-java test check tests spark cluster spark-and-cluster compiled run bench fuzz hostile soak chaos mutants lock docs clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

setup: $(VENV)/.ready

# PySpark is built from its sources, which takes as long as all the rest: both at once.
$(VENV)/.ready: requirements/test.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; none was found on the PATH." \
		"Name one with: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "setting up $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear $(VENV)
	@awk '/^[^ #]/ {part = /^pyspark==/ ? "spark" : "rest"} {print > ("$(VENV)/" part ".lock")}' requirements/test.lock
	@set -e; $(INSTALL) --requirement $(VENV)/spark.lock & spark=$$!; trap 'kill $$spark 2>/dev/null || true' EXIT; \
		$(INSTALL) --requirement $(VENV)/rest.lock; wait $$spark
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# Tests wait more than they work: three at a time. Spark's, one by one in one session, go first,
# then those on a cluster. What all of them have shown is compared with the register at the end.
test: check
	@rm -rf $(RESULTS)
	@$(MAKE) --no-print-directory --jobs=3 spark-and-cluster tests compiled
	$(BIN)/python tools/conformance proved
	$(BIN)/python tools/limits proved

spark-and-cluster: setup
	@$(MAKE) --no-print-directory spark
	@$(MAKE) --no-print-directory cluster

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/conformance check
	$(BIN)/python tools/limits check

# Spark's tests need a Java; without one, `make run` shows everything but the data pipeline.
java: setup
	@$(BIN)/python tools/java.py

perhaps-java: setup
	@$(BIN)/python tools/java.py || true

tests: setup
	nice -n 10 $(BIN)/python -m pytest --numprocesses 3 --dist worksteal --ignore=tests/spark --ignore=tests/cluster --spec-results=$(RESULTS)/tests.json

# One session for all of them, so one process.
spark: setup java
	$(BIN)/python -m pytest --quiet --spec-results=$(RESULTS)/spark.json tests/spark

# A master, two workers and a driver as processes, some of which are killed.
cluster: setup java
	$(BIN)/python -m pytest --spec-results=$(RESULTS)/cluster.json tests/cluster

compiled: setup
	nice -n 19 $(BIN)/python tools/compiled.py test

run: setup perhaps-java
	@$(BIN)/merq demo --data data --lake data/lake

$(PEERS)/.ready: requirements/bench.lock $(VENV)/.ready
	@rm -rf $(PEERS)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --target=$(PEERS) --requirement requirements/bench.lock
	@touch $@

bench: setup $(PEERS)/.ready
	$(BIN)/python tools/compiled.py build
	$(BIN)/python bench/codec.py
	$(BIN)/python bench/embedded --profile
	$(BIN)/python bench/growth
	$(BIN)/python bench/brokers
	$(BIN)/python bench/exchange
	$(BIN)/python bench/hostile
	$(BIN)/python bench/spark
	$(BIN)/python bench/flows

fuzz: setup
	$(BIN)/python fuzz/fuzz_packets.py -max_total_time=$(SECONDS)
	$(BIN)/python fuzz/fuzz_sessions.py -max_total_time=$(SECONDS)
	$(BIN)/python fuzz/fuzz_exchange.py -max_total_time=$(SECONDS)
	$(BIN)/python fuzz/fuzz_application.py -max_total_time=$(SECONDS)

# The same seed attacks in the same way: make hostile SECONDS=60 KILLS=10 SEED=7
hostile: SECONDS = 600
hostile: KILLS = 100
hostile: SEED = 5
hostile: setup
	$(BIN)/python tools/hostile_load.py --seconds $(SECONDS) --kills $(KILLS) --seed $(SEED)

# It sends for an hour at most; SECONDS says another bound.
soak: SECONDS = 3600
soak: setup
	$(BIN)/python tools/soak.py --count $(COUNT) --seconds $(SECONDS)
	$(BIN)/python tools/soak.py --count $$(($(COUNT) / 10)) --seconds $(SECONDS) --receiver strict

# The same seed kills the same kinds in the same order: make chaos KILLS=40 SEED=7
chaos: SECONDS = 3600
chaos: SEED = 5
chaos: setup java
	$(BIN)/python tools/chaos.py --kills $(KILLS) --seconds $(SECONDS) --seed $(SEED)

# The same seed tries the same mutants: make mutants PACKAGE=engine SAMPLE=500 SEED=2
mutants: SEED = 1
mutants: setup
	nice -n 15 $(BIN)/python tools/mutants --sample $(SAMPLE) --seed $(SEED) $(if $(PACKAGE),--package $(PACKAGE))

lock: setup
	$(BIN)/python tools/lock.py

docs: setup
	$(BIN)/python tools/conformance report
	$(BIN)/python tools/wiredoc.py
	$(BIN)/python tools/settingsdoc.py
	$(BIN)/python tools/limits report

clean:
	rm -rf $(VENV) .build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests tools bench fuzz -name __pycache__ -type d -prune -exec rm -rf {} +
