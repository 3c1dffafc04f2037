# Everything runs inside .venv, which make creates: a new machine needs only Python and make.
# All paths are relative, so the checkout may live in a directory with spaces.

PYTHON ?= python3
# More processes than a small machine has cores, because many tests wait.
PYTEST_ARGS ?= -n 5 --dist loadgroup

# Processes are started by the hundred: none should compile again what another one has compiled.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
STAMP := .venv/.installed
LOCKS := tools/locks
# Only Spark is built from source. Nothing else may be, because its build requirements would not be locked.
WHEELS := --only-binary :all: --no-binary pyspark
# Python compiles modules when they are first imported; most never are.
PIP_OPTIONS := --quiet --disable-pip-version-check --no-build-isolation --no-compile
INSTALL := $(BIN)/python -m pip install $(PIP_OPTIONS)
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes $(WHEELS) \
	--no-annotate --custom-compile-command "make lock"

.DEFAULT_GOAL := help
.PHONY: help venv lock check types rules docs compiled-tests test test-fast test-heavy test-matrix test-django chaos interleavings release-check demo screenshots bench-core bench-peers bench-designs bench-scale bench-spark bench-charts simulate format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

venv: $(STAMP) ## create .venv with the locked development tools

$(STAMP): pyproject.toml $(LOCKS)/build.txt $(LOCKS)/dev.txt
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: '$(PYTHON)' is not Python 3.11 or newer; set PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "error: '$(PYTHON)' cannot create virtual environments; on Debian or Ubuntu: apt install python3-venv" >&2; exit 1; }
	"$(PYTHON)" -m venv .venv
	$(INSTALL) --require-hashes $(WHEELS) -r $(LOCKS)/build.txt
	DIST_EXTRA_CONFIG="$$PWD/tools/wheels.cfg" \
		$(BIN)/python tools/install.py $(LOCKS)/dev.txt $(PIP_OPTIONS) --require-hashes $(WHEELS) --use-pep517
	$(INSTALL) --no-deps -e .
	@touch $(STAMP)

lock: ## update the locked versions and hashes; needs uv (LOCK_ARGS="--upgrade-package ruff")
	@command -v uv >/dev/null || { echo "error: uv is not on the PATH; to install it: pip install uv" >&2; exit 1; }
	$(LOCK) $(LOCK_ARGS) --extra dev -o $(LOCKS)/dev.txt pyproject.toml
	$(LOCK) $(LOCK_ARGS) --extra test -o $(LOCKS)/test.txt -c $(LOCKS)/dev.txt pyproject.toml
	$(LOCK) $(LOCK_ARGS) --group build -o $(LOCKS)/build.txt -c $(LOCKS)/dev.txt
	$(LOCK) $(LOCK_ARGS) --group release -o $(LOCKS)/release.txt -c $(LOCKS)/dev.txt

# Independent of each other, and none keeps two cores busy.
CHECKS := docs types rules

check: $(STAMP) ## lint, format, types, import rules, generated files, documentation
	@$(MAKE) --no-print-directory -j 2 $(CHECKS)

types: $(STAMP)
	$(BIN)/python -m mypy --num-workers 2

rules: $(STAMP)
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check
	$(BIN)/lint-imports
	$(BIN)/python tools/unasync.py --check
	$(BIN)/python tools/policy.py --check
	$(BIN)/python tools/freeze.py --check
	$(BIN)/python tools/migrations.py

# Always from the beginning: Sphinx repeats no warning about a page that it has read before.
docs: $(STAMP) ## build the documentation as a site, in build/docs; a warning is an error
	$(BIN)/python -m sphinx -q -E -W --keep-going -c docs . build/docs

# Compiled once, before several processes collect the same tests at the same time.
compiled-tests: $(STAMP)
	@test -d tests/__pycache__ || $(BIN)/python -m pytest --collect-only -q >/dev/null || true

test: $(STAMP) ## make check, then every test (PYTEST_ARGS="-k fairness" selects some)
	@$(MAKE) --no-print-directory -j 2 $(CHECKS) compiled-tests
	$(BIN)/python -m pytest $(PYTEST_ARGS)

test-fast: $(STAMP) ## lint, format, and most tests, in under two minutes: no Spark, one server
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check
	$(BIN)/python tools/unasync.py --check
	$(BIN)/python tools/policy.py --check
	$(BIN)/python -m pytest --fast $(PYTEST_ARGS)

test-heavy: $(STAMP) ## what make test leaves out: longer runs, plans on other servers, a Spark cluster, mutants, a new .venv
	$(BIN)/python -m pytest --heavy $(PYTEST_ARGS)

test-matrix: $(STAMP) ## the tests of SQL on every PostgreSQL and Python (MATRIX_ARGS="--pg 14,18 --python 3.14")
	$(BIN)/python -m tools.matrix $(MATRIX_ARGS)

test-django: $(STAMP) ## Django 6 with its own tests of task backends, and ours (DJANGO_ARGS="--django 6.0.10")
	$(BIN)/python -m tools.django_conformance $(DJANGO_ARGS)

chaos: $(STAMP) ## inject faults under load and account for every message (CHAOS_ARGS="--only failover --seed 7")
	$(BIN)/python -m tests.chaos $(CHAOS_ARGS)

interleavings: $(STAMP) ## every order of concurrent statements (INTERLEAVINGS_ARGS="--bound 2 --seconds 3600 --seed 7")
	$(BIN)/python -m tests.interleavings $(INTERLEAVINGS_ARGS)

demo: $(STAMP) ## watch tenants take turns, on a private PostgreSQL
	$(BIN)/python -m examples.demo

screenshots: $(STAMP) ## take the pictures of the dashboard in docs/images (SCREENSHOTS_ARGS="--seconds 60")
	$(BIN)/python -m tools.screenshots $(SCREENSHOTS_ARGS)

bench-core: $(STAMP) ## benchmark the queue's core against two reference designs
	$(BIN)/python -m benchmarks.core

bench-designs: $(STAMP) ## benchmark the table designs from which this queue developed
	$(BIN)/python -m benchmarks.designs

bench-scale: $(STAMP) ## measure the limits of one PostgreSQL
	$(BIN)/python -m benchmarks.scale

release-check: $(STAMP) ## build the distributions, and try them in empty environments (RELEASE_ARGS="--extras all")
	$(BIN)/python tools/release_check.py $(RELEASE_ARGS)

simulate: $(STAMP) ## simulate a million tenants, with turns and with FIFO
	$(BIN)/python -m benchmarks.simulation

bench-spark: $(STAMP) ## benchmark the Spark source, the archive and the analysis (BENCH_ARGS="--quick")
	$(BIN)/python -m benchmarks.spark $(BENCH_ARGS)

bench-charts: $(STAMP) ## make charts and pages from the results
	$(BIN)/python -m benchmarks.charts

bench-peers: $(STAMP) ## benchmark it against other queues (BENCH_ARGS="--quick")
	$(BIN)/python -m benchmarks.peers $(BENCH_ARGS)

format: $(STAMP) ## regenerate generated files, wrap pages, fix what ruff can fix, format
	$(BIN)/python tools/unasync.py
	$(BIN)/python tools/policy.py
	$(BIN)/python tools/wrap.py
	$(BIN)/python -m ruff check --fix-only --quiet
	$(BIN)/python -m ruff format

clean: ## remove .venv, caches and build output
	rm -rf .venv .matrix .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find . -path ./.git -prune -o -type d -name __pycache__ -exec rm -rf {} +
