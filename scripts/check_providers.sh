#!/bin/sh
# The same answers through all doors: our wire, the Responses API, LiteLLM, Inspect. Two environments
# of their own from the registry, 2 GB: LiteLLM wants another openai than Inspect does. No provider
# is asked; the model is a stand-in on loopback.
set -eu
: "${EVENHAND_DATA:?name a folder with BBQ}"
cache="${1:-${XDG_CACHE_HOME:-$HOME/.cache}}"
checked() {
    place="$cache/evenhand-providers-$1"
    [ -x "$place/bin/python" ] || "${PY:-.venv/bin/python}" -m venv "$place"
    library="$1" && shift
    "$place/bin/python" -m pip install --quiet -e . anthropic==2.10.0 "$@"
    "$place/bin/python" -m compat.check_providers "$library"
}
checked litellm litellm==1.106.2
checked inspect inspect_ai==0.3.285 openai==3.51.0
