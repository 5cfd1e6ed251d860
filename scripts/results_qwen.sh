#!/usr/bin/env bash
# What the methods do with a model that can read: the runs behind docs/results.md, one part at a time.
#
#   EVENHAND_DATA=data GGUF=qwen2.5-coder-1.5b-instruct-q4_k_m.gguf scripts/results_qwen.sh runs/qwen frontier
#
# Parts: frontier, stardtox, mabrf, malibu. Needs the extra local and bbq in EVENHAND_DATA; or any
# endpoint that gives log-probabilities, named by EVENHAND_BASE_URL with GGUF left out. A run that was
# stopped goes on with the same command.
set -euo pipefail

out=${1:?where to: scripts/results_qwen.sh FOLDER PART}
part=${2:?which part: frontier, stardtox, mabrf or malibu}
: "${EVENHAND_DATA:?a folder with the data sets}"
mkdir -p "$out"
given=${EVENHAND_BASE_URL:-}
. "$(dirname "$0")/serving.sh"
if [ -n "${GGUF:-}" ]; then SLOTS=${SLOTS:-4} serve "$GGUF"; else export EVENHAND_BASE_URL=$given; fi
calls=(--concurrency "${CONCURRENCY:-4}" --seed 1 --max-tokens "${MAX_TOKENS:-160}")

tolerated() { # COMMAND…: code 2 says that too little could be read, which is a result
  "$@" || [ $? -eq 2 ]
}

case $part in
  frontier) # 88 items. Three calls leave StarDTox no revision, so it is given one by hand: 4 at most.
    tolerated evenhand frontier --per-category 8 --calls 3 "${calls[@]}" --out "$out/frontier" \
      --methods "${METHODS:-rotated,detect_first:choice_brain=rule,stardtox:choice_brain=rule+support_above=0.5+max_iterations=1,stardtox:read=logprob+max_iterations=1,detect_first,cot,stardtox:max_iterations=1,self_debias_explanation,self_debias_reprompting}"
    ;;
  stardtox) # Table III and the half of Figure 3 that is BBQ's: the judge by JSON, by log-probability, of support
    tolerated evenhand dev reproduce stardtox table3 "${calls[@]}" --out "$out/papers"
    tolerated evenhand dev reproduce stardtox figure3 --show --out "$out/papers"
    ;;
  mabrf) # Tables 3 and 5 and Figure 4: the paper's 110 items, without search
    tolerated evenhand dev reproduce mabrf table5 --size paper --only bbq-mabrf "${calls[@]}" --out "$out/papers"
    for table in table3 figure4; do
      tolerated evenhand dev reproduce mabrf $table --size paper --show --out "$out/papers"
    done
    ;;
  malibu) # Figures 4 to 6 and 9
    tolerated evenhand dev reproduce malibu "${calls[@]}" --out "$out/papers"
    ;;
  *) echo "no such part: $part" >&2; exit 2 ;;
esac
