"""The digest of every byte that is written of some kept runs: `python -m same_numbers.digests`."""

import hashlib
from pathlib import Path

from evenhand.findings.audit import audit_of
from evenhand.findings.comparison import compare
from evenhand.findings.report import report
from evenhand.instruments import instrument_of
from evenhand.instruments.judge.certificate import certificate_of
from evenhand.instruments.likelihood_sets import all_sets, runs_at
from evenhand.runs.store import RunReader
from evenhand.views.files import to_json

KEPT = Path(__file__).with_name("kept")
RUNS = ("bbq/default", "squad/default", "overcorrection/default", "rtp/default")


def digests() -> dict[str, str]:
    """What is found, and a digest of its file."""
    found: dict[str, bytes] = {}
    for name in RUNS:
        run = RunReader(KEPT / name)
        found[f"report of {name}"] = to_json(report(instrument_of(run), run))
    before, after = (RunReader(KEPT / "squad" / name) for name in ("default", "fairness"))
    found["comparison"] = to_json(compare(instrument_of(before), before, after))
    for name, run in runs_at(str(KEPT / "likelihood/one_set")).items():
        found[f"report of {name}"] = to_json(report(all_sets()[name], run))
    run = RunReader(KEPT / "judge/few_bases")
    of_judge = audit_of(report(instrument_of(run), run))
    certificate = certificate_of(run, of_judge.checks)
    found |= {"audit": to_json(of_judge), "certificate": certificate.to_bytes()}
    return {name: hashlib.sha256(data).hexdigest() for name, data in found.items()}


if __name__ == "__main__":
    for name, digest in digests().items():
        print(f"{name}\t{digest}")
