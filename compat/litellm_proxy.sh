#!/usr/bin/env bash
# LiteLLM's proxy as installed from the registry, in an environment of its own (0.6 GB).
#
#   compat/litellm_proxy.sh    install it if it is not there, and print the path of the command
#
# Settings, all optional:
#   VENV     virtual environment       (.venv-litellm in the project)
#   PYTHON   interpreter for the venv  (python3.11)
#   VERSION  of LiteLLM                (1.108.4)
# The packages come from wherever pip is configured to look. None of them brings torch.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
VENV="${VENV:-$here/../.venv-litellm}"
PYTHON="${PYTHON:-python3.11}"
VERSION="${VERSION:-1.108.4}"
ready="$VENV/.evenhand-litellm-$VERSION"
pip=(nice -n 10 "$VENV/bin/python" -m pip --disable-pip-version-check --quiet)

say() { echo "$*" >&2; }

# A registry may lag behind by the certificates that LiteLLM asks for, which nobody needs on
# loopback: then its other requirements, all of them, with whatever certificates there are.
with_older_certificates() {
    "${pip[@]}" install --no-deps "litellm==$VERSION"
    "$VENV/bin/python" - > "$VENV/requirements.txt" <<'PY'
from importlib.metadata import requires
from pip._vendor.packaging.requirements import Requirement
for one in map(Requirement, requires("litellm")):
    if one.marker is None or one.marker.evaluate({"extra": "proxy"}):
        extras = f"[{','.join(one.extras)}]" if one.extras else ""
        print(one.name if one.name == "certifi" else f"{one.name}{extras}{one.specifier}")
PY
    "${pip[@]}" install --no-compile -r "$VENV/requirements.txt"
}

if [ ! -e "$ready" ]; then
    say "installing LiteLLM $VERSION into $VENV (0.6 GB)"
    [ -x "$VENV/bin/python" ] || "$PYTHON" -m venv "$VENV"
    "${pip[@]}" install --no-compile "litellm[proxy]==$VERSION" || {
        say "not as a whole; once more without the newest certificates"
        with_older_certificates
    }
    touch "$ready"
fi
echo "$VENV/bin/litellm"
