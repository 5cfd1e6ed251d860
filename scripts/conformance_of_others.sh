#!/bin/sh
# The table of docs/validation.md: installs other tools from the registry, each into an environment
# of its own, and holds them against the conformance suite. Some minutes, and 2 GB of disk.
set -eu
place="${1:-${XDG_CACHE_HOME:-$HOME/.cache}/evenhand-conformance}"
python="${PY:-.venv/bin/python}"

installed() {  # NAME PIP-ARGUMENTS...
    name="$1"; shift
    [ -x "$place/$name/bin/python" ] || "$python" -m venv "$place/$name"
    "$place/$name/bin/python" -m pip install --quiet "$@"
}

mkdir -p "$place"
installed lm-eval lm-eval
installed inspect-evals --no-deps inspect_evals
installed inspect-evals inspect_ai datasets backoff pillow toml
# HELM's scenario and metric of BBQ, without torch, which they do not use.
installed helm --no-deps crfm-helm
installed helm "cattrs~=22.2" colorlog "dacite~=1.6" Mako "pandas~=2.0" pyhocon ubelt retrying \
    tqdm zstandard "sqlitedict<3" requests filelock pyyaml

"$python" -c "from evenhand.cli import main; main()" conformance --markdown \
    --tool evenhand \
    --tool helm --python "$place/helm/bin/python" \
    --tool inspect-evals --python "$place/inspect-evals/bin/python" \
    --tool lm-eval --python "$place/lm-eval/bin/python" \
    --tool lm-eval-generate --python "$place/lm-eval/bin/python" ||
    [ $? -eq 2 ]  # a property is broken: the table says by whom
