"""The page of a run folder: what was run, how far it is, what it took."""

from evenhand.findings.run import Run
from evenhand.views import numbers
from evenhand.views.blocks import GAP, Block, Grid, Line

_ROWS, _LONGEST = 5, 160  # our choice: a look at the answers, not all of them


def page(run: Run, *, full: bool = False) -> list[Block]:
    """The blocks of a run; `full` shows every answer instead of the first few."""
    totals, record = run.totals, run.record
    model = record.cast["default"]["model"]
    blocks: list[Block] = [
        Line(f"{run.path} · {model} · {record.method['name']}", "strong"),
        Line(f"{totals.answered:,} of {run.reader.planned:,} items answered"),
    ]
    if run.reader.open:
        blocks.append(Line("The run is open: more items may come", "bad"))
    if totals.failed:
        reasons = ", ".join(f"{n:,} {reason}" for reason, n in totals.failed.items())
        blocks.append(Line(f"Failed, and without an answer: {reasons}", "bad"))
    tokens = None if totals.tokens_unknown else totals.prompt_tokens + totals.completion_tokens
    cost = f"{numbers.count(totals.calls, 'calls')}, {numbers.count(tokens, 'tokens')}"
    return [*blocks, GAP, _answers(run, full), GAP, Line(f"cost  {cost}", "dim")]


def _answers(run: Run, full: bool) -> Grid:
    results = run.reader.results().select("item_id", "prompt", "text", "reason")
    rows = (results if full else results.head(_ROWS)).collect()
    cells = tuple(
        (item, _clipped(prompt), _clipped(text if text is not None else f"({reason})"))
        for item, prompt, text, reason in rows.iter_rows()
    )
    return Grid(("item", "prompt", "answer"), cells)


def _clipped(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]} …"
