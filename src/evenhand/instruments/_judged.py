"""What a comparison says of a judge that marked the texts of both runs."""

from evenhand.findings.estimates import GuardrailTest
from evenhand.runs.store import RunReader
from evenhand.training.rating.judges import JudgeWithin


def no_witness(judge: JudgeWithin, before: RunReader, after: RunReader) -> list[GuardrailTest]:
    """Explain why a judge's scores cannot compare two runs.

    This is so if different judges scored them, or if a judge is not independent of the model that
    it scores.

    Args:
        judge: Role and folder of the judge within a run.
        before: Baseline run.
        after: Run that is compared with it.

    Returns:
        One inconclusive guardrail per reason. Empty if the scores can be compared.
    """
    judges, what = [judge.judge_of(run) for run in (before, after)], judge.folder
    lines = []
    if None not in judges and judges[0] != judges[1]:
        lines.append(f"{what} by different judges: {judges[0]} and {judges[1]}")
    doubts = dict.fromkeys(note for run in (before, after) for note in judge.doubts(run))
    lines += [f"{what}: inconclusive. {note}" for note in doubts]
    return [
        GuardrailTest(name=f"{what}_judge_{number}", state="inconclusive", says=line)
        for number, line in enumerate(lines, start=1)
    ]
