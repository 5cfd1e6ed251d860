#!/bin/sh
# Opens exports with the tools that they are for, and runs the plug-in inside of Inspect, in an
# environment of its own from the registry, 1 GB: Inspect wants an older fsspec than the one that is
# locked here. Pictures of Inspect's viewer are left in PICTURES, if it names a folder.
set -eu
: "${EVENHAND_DATA:?name a folder with BBQ}"
place="${1:-${XDG_CACHE_HOME:-$HOME/.cache}/evenhand-inspect}"
[ -x "$place/bin/python" ] || "${PY:-.venv/bin/python}" -m venv "$place"
install() { "$place/bin/python" -m pip install --quiet "$@"; }
install inspect_ai==0.3.285 inspect_evals==0.26.0 openai==3.51.0 datasets==5.2.0 \
    huggingface_hub==2.4.0 pandas==3.1.1 -e .
install --no-deps --ignore-requires-python --require-hashes -r requirements/schemas.txt
"$place/bin/python" -m compat.check_exports ${PICTURES:+"$PICTURES"}
"$place/bin/python" -m compat.check_inspect
