#!/usr/bin/env bash
# Runs every example against the endpoint that EVENHAND_BASE_URL and EVENHAND_MODEL name, each into
# a folder of its own; without them, against scripted models.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PY:-.venv/bin/python}
out=${1:-$(mktemp -d)}
for script in examples/*.py; do
    name=$(basename "$script" .py)
    [ "$name" = at_hand ] && continue
    echo "== $name"
    "$python" "$script" "$out/$name"
done
for notebook in examples/*.ipynb; do
    name=$(basename "$notebook" .ipynb)
    echo "== $name (notebook)"
    mkdir -p "$out/notebook-$name"
    PYTHONPATH="$PWD/examples${PYTHONPATH:+:$PYTHONPATH}" "$python" - "$notebook" "$out/notebook-$name" <<'PYTHON'
import sys

import nbformat
from nbclient import NotebookClient

notebook, folder = sys.argv[1:]
opened = nbformat.read(notebook, as_version=4)
NotebookClient(opened, timeout=1800, resources={"metadata": {"path": folder}}).execute()
nbformat.write(opened, f"{folder}/executed.ipynb")
PYTHON
done
echo "all examples ran; results in $out"
