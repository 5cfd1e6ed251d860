#!/usr/bin/env bash
# What the methods do with a model that can read: the runs behind docs/results.md, one part at a time.
#
#   EVENHAND_DATA=data GGUF=qwen2.5-coder-1.5b-instruct-q4_k_m.gguf scripts/results_qwen.sh runs/qwen frontier
#
# Parts: frontier, stardtox, mabrf. Needs the extra local and bbq in EVENHAND_DATA; or any endpoint
# that gives log-probabilities, named by EVENHAND_BASE_URL with GGUF left out. A run that was stopped
# goes on with the same command.
set -euo pipefail

out=${1:?where to: scripts/results_qwen.sh FOLDER PART}
part=${2:?which part: frontier, stardtox or mabrf}
: "${EVENHAND_DATA:?a folder with the data sets}"
mkdir -p "$out"
given=${EVENHAND_BASE_URL:-}
. "$(dirname "$0")/serving.sh"
if [ -n "${GGUF:-}" ]; then SLOTS=${SLOTS:-4} serve "$GGUF"; else export EVENHAND_BASE_URL=$given; fi
calls=(--in-flight "${IN_FLIGHT:-4}" --seed 1 --reply-tokens 160)

tolerated() { # COMMAND…: code 2 says that too little could be read, which is a result
  "$@" || [ $? -eq 2 ]
}

case $part in
  frontier) # 88 items, eleven methods at equal calls
    tolerated evenhand frontier --per-category 8 --calls 3 "${calls[@]}" --out "$out/frontier" \
      --methods rotated,detect_first,detect_first:read=logprob,cot,self_debias_reprompting,self_debias_explanation,stardtox,stardtox:read=logprob
    ;;
  stardtox) # Table III: the judge by JSON, by log-probability and the judge of support
    for judge in read=json read=logprob bias_brain=rule; do
      tolerated evenhand measure bbq --per-category 8 --method stardtox --set $judge "${calls[@]}" \
        --out "$out/stardtox-${judge#*=}"
    done
    ;;
  mabrf) # Tables 3 and 5, Figure 4: the paper's 110 items, without search
    tolerated evenhand measure bbq --preset mabrf --method mabrf --set max_iterations=2 \
      "${calls[@]}" --out "$out/mabrf"
    ;;
  *) echo "no such part: $part" >&2; exit 2 ;;
esac
