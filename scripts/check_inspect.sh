#!/bin/sh
# Opens an export with Inspect's own reader, and runs the plug-in inside of Inspect, in an environment
# of its own from the registry, 1 GB: Inspect wants an older fsspec than the one that is locked here.
# EVENHAND_DATA names a folder with BBQ; without it the plug-in is not run.
set -eu
place="${1:-${XDG_CACHE_HOME:-$HOME/.cache}/evenhand-inspect}"
python="${PY:-.venv/bin/python}"
[ -x "$place/bin/python" ] || "$python" -m venv "$place"
"$place/bin/python" -m pip install --quiet inspect_ai==0.3.285 inspect_evals==0.26.0 \
    openai==3.51.0 -e .
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for run in rtp/stardtox squad/default overcorrection/self_debias_reprompting; do
    rm -f "$out/log.eval"
    "$python" -c "from evenhand.cli import main; main()" \
        export "tests/same_numbers/kept/$run" --to inspect --out "$out/log.eval"
    "$place/bin/python" - "$out/log.eval" <<'END'
import sys

from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries

log = read_eval_log(sys.argv[1])
listed = read_eval_log_sample_summaries(sys.argv[1])
assert log.status == "success" and log.results is not None and log.samples
assert {one.id for one in log.samples} == {one.id for one in listed}
failed = [one for one in log.samples if one.error]
assert failed and not any(one.scores for one in failed)
print(f"Inspect reads {log.eval.task}: {len(log.samples)} samples, {len(failed)} with an error")
END
done
if [ -z "${EVENHAND_DATA:-}" ]; then
    echo "the plug-in was NOT run: name a folder with BBQ in EVENHAND_DATA"
else
    "$place/bin/python" -m compat.check_inspect
fi
