"""One item's conversation as a person reads it: who said what, the scores, why it stopped."""

from collections.abc import Mapping, Sequence

import orjson
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from evenhand.domain import Draft, Turn

_SHOWN = 700  # characters of a reply; the rest is in the run folder and in --json
_STYLES = {"generator": "cyan", "bias_evaluator": "magenta", "performance_evaluator": "yellow"}


def timeline(
    turns: Sequence[Turn], drafts: Sequence[Draft], ending: str, *, prompts: bool = False
) -> RenderableType:
    """`ending` says why it stopped; `prompts` shows what each agent was told as well."""
    parts: list[RenderableType] = []
    for turn in turns:
        parts.append(_head(turn))
        if prompts:
            parts += [_said(f"{m.role}: {m.content}", "dim") for m in turn.messages]
        parts.append(_said(_clipped(_words(turn)), _STYLES.get(turn.role, "green")))
    if any(draft.scores for draft in drafts):
        parts += [Rule(style="dim"), _scores(drafts)]
    parts += [Rule(style="dim"), Text(f"stopped: {ending}", style="bold"), Text(_cost(turns))]
    return Group(*parts)


def _head(turn: Turn) -> Text:
    head = Text(f"{turn.index + 1}. {turn.role}", style=f"bold {_STYLES.get(turn.role, 'green')}")
    facts = [turn.model, turn.prompt, f"{turn.seconds:.1f} s"]
    if turn.prompt_tokens is not None:
        facts.append(f"{turn.prompt_tokens}+{turn.completion_tokens} tokens")
    if turn.attempts > 1:
        facts.append(f"{turn.attempts} attempts")
    return head.append("  " + " · ".join(facts), style="dim not bold")


def _words(turn: Turn) -> str:
    """The reply; a typed one as `name: value` lines."""
    if turn.error is not None:
        return f"FAILED ({turn.error}): {turn.error_message}"
    text = turn.texts[0]
    try:
        fields = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    if not isinstance(fields, Mapping):
        return text
    return "\n".join(f"{name}: {value}" for name, value in fields.items())


def _clipped(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} … ({len(text) - _SHOWN:,} more)"


def _said(text: str, style: str) -> Padding:
    return Padding(Text(text, style=style), (0, 0, 1, 3))


def _scores(drafts: Sequence[Draft]) -> Table:
    names = list(dict.fromkeys(name for draft in drafts for name in draft.scores))
    table = Table("draft", *names, box=None, padding=(0, 2, 0, 0), header_style="dim")
    for number, draft in enumerate(drafts):
        cells = (f"{draft.scores[n]:.2f}" if n in draft.scores else "-" for n in names)
        table.add_row("first" if number == 0 else f"revision {number}", *cells)
    return table


def _cost(turns: Sequence[Turn]) -> str:
    counted = [turn for turn in turns if turn.prompt_tokens is not None]
    tokens = sum((t.prompt_tokens or 0) + (t.completion_tokens or 0) for t in counted)
    calls = sum(1 for turn in turns if turn.attempts)
    unknown = "" if len(counted) == len(turns) else f", {len(turns) - len(counted)} turns uncounted"
    return f"{calls} calls, {tokens:,} tokens{unknown}"
