# `make check` is exactly what CI runs.
PY ?= .venv/bin/python

.PHONY: check lint types contracts test docs bench-kernel compat-vllm

check: lint types contracts test docs

lint:
	$(PY) -m ruff format --check src tests bench
	$(PY) -m ruff check src tests bench

types:
	$(PY) -m mypy

contracts:
	.venv/bin/lint-imports

test:
	$(PY) -m pytest

docs:
	$(PY) -m mkdocs build --strict --quiet

# Long measurements: not part of `check`.
bench-kernel:
	$(PY) bench/kernel.py

compat-vllm:
	compat/vllm.sh
