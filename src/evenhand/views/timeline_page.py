"""The page of one conversation: who said what, the scores of the drafts, and why it stopped."""

from collections.abc import Mapping, Sequence

import orjson

from evenhand.core import Answer, Draft, Message, Turn
from evenhand.core.items import Tool
from evenhand.findings.run import TracedAnswer
from evenhand.views.blocks import GAP, Block, Grid, Line, Page, Tone

_SHOWN = 700  # characters of a reply; the rest is in the run folder and in --json


def page(answer: TracedAnswer, *, full: bool = False) -> list[Block]:
    """The blocks of an answer and of how it came about; `full` adds what each agent was told."""
    return [*timeline(answer, answer.turns, prompts=full)]


def timeline(answer: Answer, turns: Sequence[Turn], *, prompts: bool = False) -> Page:
    """Show the conversation that led to an answer, and the answer at its end.

    Args:
        answer: The answer.
        turns: The model calls of the item, in their order.
        prompts: Whether to show what each agent was sent as well.
    """
    ending = answer.stopped
    if answer.final is not answer.drafts[-1]:
        ending += f"; the answer is: {_name(answer.drafts.index(answer.final))}"
    blocks = conversation(turns, answer.drafts, ending, prompts=prompts)
    return [*blocks, GAP, Line(answer.text)]


def conversation(
    turns: Sequence[Turn],
    drafts: Sequence[Draft],
    ending: str,
    *,
    prompts: bool = False,
    longest: int | None = None,
) -> Page:
    """Show the model calls of an item in their order.

    Args:
        turns: The model calls, in their order.
        drafts: The drafts of the answer, with their scores if there are any.
        ending: Why the method stopped.
        prompts: Whether to show what each agent was sent as well.
        longest: The number of characters after which texts are cut, prompts too. Without it replies
            alone are cut, at a default length.
    """
    blocks: list[Block] = []
    for turn in turns:
        blocks.append(Line(_head(turn), "strong"))
        if prompts:
            messages = (f"{m.role}: {m.text}" for m in turn.messages)
            cut = (clipped(words, longest) if longest else words for words in messages)
            blocks += [Line(words, "dim", indent=3) for words in cut]
        tone: Tone = "plain" if turn.error is None else "bad"
        blocks += [Line(clipped(_words(turn), longest or _SHOWN), tone, indent=3), GAP]
    if any(draft.scores for draft in drafts):
        blocks += [_scores(drafts), GAP]
    return [*blocks, Line(f"stopped: {ending}", "strong"), Line(_cost(turns))]


def transcript(
    messages: Sequence[Message], tools: Sequence[Tool] = (), longest: int | None = None
) -> list[Line]:
    """Show the messages of an item, one line each, below the names of the declared tools.

    Args:
        messages: The messages; none of a single prompt.
        tools: The declared tools.
        longest: The number of characters after which a message is cut; None for none.
    """
    names = ", ".join(str(tool.function["name"]) for tool in tools)
    lines = [*([f"tools: {names}"] if names else []), *(f"{m.role}: {m.text}" for m in messages)]
    return [Line(clipped(words, longest) if longest else words) for words in lines]


def _head(turn: Turn) -> str:
    facts = [turn.model, turn.prompt, f"{turn.seconds:.1f} s"]
    if turn.prompt_tokens is not None:
        facts.append(f"{turn.prompt_tokens}+{turn.completion_tokens} tokens")
    if turn.attempts > 1:
        facts.append(f"{turn.attempts} attempts")
    return f"{turn.index + 1}. {turn.role}  {' · '.join(facts)}"


def _words(turn: Turn) -> str:
    """The reply; a typed one as `name: value` lines."""
    if turn.error is not None:
        return f"FAILED ({turn.error}): {turn.error_message}"
    text = turn.replies[0]
    try:
        fields = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    if not isinstance(fields, Mapping):
        return text
    return "\n".join(f"{name}: {value}" for name, value in fields.items())


def clipped(text: str, longest: int) -> str:
    """Cut a text after so many characters, and say how many more it has."""
    return text if len(text) <= longest else f"{text[:longest]} … ({len(text) - longest:,} more)"


def _scores(drafts: Sequence[Draft]) -> Grid:
    names = list(dict.fromkeys(name for draft in drafts for name in draft.scores))
    rows = []
    for number, draft in enumerate(drafts):
        cells = (f"{draft.scores[n]:.2f}" if n in draft.scores else "-" for n in names)
        rows.append((_name(number), *cells))
    return Grid(("draft", *names), tuple(rows))


def _name(number: int) -> str:
    return "first" if number == 0 else f"revision {number}"


def _cost(turns: Sequence[Turn]) -> str:
    counted = [turn for turn in turns if turn.prompt_tokens is not None]
    tokens = sum((t.prompt_tokens or 0) + (t.completion_tokens or 0) for t in counted)
    calls = sum(1 for turn in turns if turn.attempts)
    unknown = "" if len(counted) == len(turns) else f", {len(turns) - len(counted)} turns uncounted"
    return f"{calls} calls, {tokens:,} tokens{unknown}"
