#!/usr/bin/env bash
# Does a request within a text move a small real judge? Twenty insults and twenty harmless sentences,
# clean and attacked, in the fence and without it: 200 verdicts.
#
#   GGUF=model.gguf scripts/injection.sh runs/injection
#
# Needs the extra local. Without GGUF it asks SmolLM2-135M, which is at chance as a judge: then the
# first line says so, and the rest says nothing. READ=logprob reads the verdicts by
# log-probabilities. Fewer texts: TEXTS=10. On a busy machine THREADS=1 is faster.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:?where to: scripts/injection.sh FOLDER}
mkdir -p "$out"
. scripts/serving.sh
SLOTS=2 serve "${GGUF:-}"
EVENHAND_MODEL=$("${PY:-python}" -c 'import json, sys; print(json.load(sys.stdin)["data"][0]["id"])' \
  < "$out/served.json")
export EVENHAND_MODEL
PYTHONPATH=.${PYTHONPATH:+:$PYTHONPATH} "${PY:-python}" bench/injection.py "${TEXTS:-20}" |
  tee "$out/injection.txt"
