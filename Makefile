# `make check` is exactly what CI runs.
PY ?= .venv/bin/python

.PHONY: check lint types contracts test test-waiting test-others docs bench-kernel bench-ray bench-memory bench-kills compat-vllm

check: lint types contracts test docs

lint:
	$(PY) -m ruff format --check src tests bench compat
	$(PY) -m ruff check src tests bench compat

types:
	$(PY) -m mypy

contracts:
	.venv/bin/lint-imports

# Clusters and object stores mostly wait, so they run beside what does not look at the clock. What
# does runs after them, alone.
WAITING = tests/cluster tests/object_store
TIMED = tests/crash tests/faults tests/kernel_runs

test:
	$(MAKE) --jobs=2 --output-sync=target test-waiting test-others
	$(PY) -m pytest $(TIMED)

test-waiting:
	$(PY) -m pytest $(WAITING)

test-others:
	$(PY) -m pytest tests $(WAITING:%=--ignore=%) $(TIMED:%=--ignore=%)

docs:
	$(PY) -m mkdocs build --strict --quiet

# Long measurements: not part of `check`.
bench-kernel:
	$(PY) bench/kernel.py

bench-ray:
	$(PY) bench/ray.py

bench-memory:
	$(PY) bench/memory.py

# Twenty kills of actors, nodes and drivers under 30 % faults, and twenty without faults.
bench-kills:
	EVENHAND_KILLS=20 $(PY) -m pytest -q -s --timeout 1800 tests/cluster/test_kill.py

# A real vLLM server on the CPU, in an environment of its own (3.5 GB), asked through our door.
compat-vllm:
	compat/vllm_server.sh
	$(PY) compat/check_endpoint.py http://127.0.0.1:8100/v1 smollm2-135m-instruct; \
	    status=$$?; compat/vllm_server.sh stop; exit $$status
