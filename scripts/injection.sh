#!/usr/bin/env bash
# Does a request within a text move a small real judge? Twenty insults and twenty harmless sentences,
# clean and attacked, in the fence and without it: 200 verdicts.
#
#   GGUF=model.gguf scripts/injection.sh runs/injection
#
# Needs the extra local. Without GGUF it asks SmolLM2-135M, which is at chance as a judge: then the
# first line says so, and the rest says nothing. Fewer texts: TEXTS=10. On a busy machine THREADS=1 is faster.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:?where to: scripts/injection.sh FOLDER}
mkdir -p "$out"
port=${PORT:-8080}
export EVENHAND_BASE_URL=http://127.0.0.1:$port/v1
python=${PY:-python}

evenhand serve-local ${GGUF:+--gguf "$GGUF"} --port "$port" --threads "${THREADS:-2}" --slots 2 \
  2> "$out/server.log" &
server=$!
trap 'kill $server' EXIT
until curl -sf "$EVENHAND_BASE_URL/models" > "$out/served.json"; do
  kill -0 $server 2> /dev/null || { cat "$out/server.log" >&2; exit 1; }
  sleep 1
done
EVENHAND_MODEL=$("$python" -c 'import json, sys; print(json.load(sys.stdin)["data"][0]["id"])' \
  < "$out/served.json")
export EVENHAND_MODEL
[ -z "${GGUF:-}" ] || sha256sum "$GGUF" | cut -d' ' -f1 | tee "$out/model.sha256"
PYTHONPATH=.${PYTHONPATH:+:$PYTHONPATH} "$python" bench/injection.py "${TEXTS:-20}" | tee "$out/injection.txt"
