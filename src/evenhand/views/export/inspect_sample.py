"""One item of a run as a sample of Inspect's log: whole, and as the list of samples has it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evenhand.interop import ExternalItem
from evenhand.views.export.exported import Row, at

_STOPS = {"stop": "stop", "length": "max_tokens", "content_filter": "content_filter"}
_LISTED = 1024  # signs of a text in the list of samples, as Inspect cuts it
_WRONG_GOLD = "no right answer is known: the record's own contradicts its text"
CHOICE = "choice"  # Inspect's own name for the scorer that reads which option was taken


def sample(
    name: str,
    row: Row,
    turns: Sequence[Row],
    question: ExternalItem | None,
    values: Mapping[str, float],
) -> dict[str, Any]:
    """Write an item. One without an answer has an error and no score at all: nothing in it can be
    read as an incorrect answer."""
    entry: dict[str, Any] = {
        "id": name,
        "epoch": 1,
        "input": row["prompt"]
        if question is None
        else f"{question.context}\n\n{question.question}",
        "choices": None if question is None else list(question.options),
        "target": "" if question is None or question.gold is None else letter(question.gold),
        "messages": list(_conversation(row, turns)),
        "output": _output(row, turns),
        "scores": None,
        "metadata": _metadata(row, question),
        "model_usage": usage(turns, "model"),
        "role_usage": usage(turns, "role"),
        "total_time": sum(turn["seconds"] for turn in turns),
        "turn_count": len(turns),
    }
    if turns:
        entry |= {
            "started_at": at(min(turn["started_us"] for turn in turns)),
            "completed_at": at(max(ended(turn) for turn in turns)),
        }
    if row["status"] != "answered":
        why = ": ".join(part for part in (row["reason"], row["message"]) if part)
        entry["error"] = {"message": why or "no answer", "traceback": "", "traceback_ansi": ""}
        return entry
    return entry | {"scores": _scores(row, question, values)}


def listed(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Give what the list of samples has of one: no conversation, and texts cut."""
    same = ("id", "epoch", "choices", "target", "scores", "model_usage", "role_usage", "total_time",
            "turn_count", "started_at", "completed_at")  # fmt: skip
    short = {key: value for key, value in entry["metadata"].items() if key != "evenhand"}
    return {
        **{key: entry[key] for key in same if key in entry},
        "input": _cut(entry["input"]),
        "metadata": {
            key: _cut(value) if isinstance(value, str) else value for key, value in short.items()
        },
        "error": _cut(entry["error"]["message"]) if "error" in entry else None,
        "completed": True,
        "message_count": len(entry["messages"]),
    }


def letter(index: int) -> str:
    return chr(ord("A") + index)


def ended(turn: Row) -> int:
    """The moment at which a call ended, in microseconds."""
    return int(turn["started_us"] + turn["seconds"] * 1e6)


def usage(turns: Iterable[Row], by: str) -> dict[str, dict[str, int]]:
    """Add up the tokens by model or role. Where a call that was answered did not tell its tokens
    there is no sum: it would look like all of them."""
    sums: dict[str, dict[str, int]] = {}
    silent = set()
    for turn in turns:
        counts = turn["prompt_tokens"], turn["completion_tokens"]
        if None in counts:
            if not turn["error"]:
                silent.add(turn[by])
            continue
        totals = sums.setdefault(turn[by], dict.fromkeys(_TOKENS, 0))
        for name, tokens in zip(_TOKENS, (*counts, sum(counts)), strict=True):
            totals[name] += tokens
    return {name: totals for name, totals in sorted(sums.items()) if name not in silent}


_TOKENS = ("input_tokens", "output_tokens", "total_tokens")


def _conversation(row: Row, turns: Sequence[Row]) -> Iterable[dict[str, Any]]:
    """All calls one after another: what each agent was told, and what it said."""
    if not turns:
        yield {"role": "user", "content": row["prompt"]}
        if row["text"] is not None:
            yield {"role": "assistant", "content": row["text"]}
    for turn in turns:
        about = {"agent": turn["role"], "prompt": turn["prompt"], "call": turn["index"]}
        if turn["error"]:
            about |= {"error": turn["error"], "error_message": turn["error_message"]}
        for message in turn["messages"]:
            yield {"role": message["role"], "content": message["content"], "metadata": about}
        for text in turn["texts"]:
            yield {"role": "assistant", "content": text, "model": turn["model"],
                   "source": "generate", "metadata": about}  # fmt: skip


def _output(row: Row, turns: Sequence[Row]) -> dict[str, Any]:
    """The answer that counts, which a method may have made of several replies."""
    model = turns[-1]["model"] if turns else ""
    if row["status"] != "answered":
        return {"model": model, "choices": [], "completion": ""}
    finish = turns[-1]["finish"] if turns else []
    stop = _STOPS.get(finish[0], "unknown") if finish else "unknown"
    message = {"role": "assistant", "content": row["text"]}
    return {"model": model, "choices": [{"message": message, "stop_reason": stop}],
            "completion": row["text"]}  # fmt: skip


def _scores(row: Row, question: ExternalItem | None, values: Mapping[str, float]) -> dict[str, Any]:
    judged = {score["name"]: score["value"] for score in row["scores_after"]}
    scores = {
        name: {"value": value} for name, value in {**judged, **values}.items() if value is not None
    }
    if question is None or row["choice"] is None:
        return scores
    taken: dict[str, Any] = {"answer": letter(row["choice"]), "explanation": row["text"]}
    if question.gold is None:  # unscored, as Inspect says it
        taken |= {"value": float("nan"), "reason": _WRONG_GOLD}
    else:
        taken["value"] = "C" if row["choice"] == question.gold else "I"
    return {**scores, CHOICE: taken}


def _metadata(row: Row, question: ExternalItem | None) -> dict[str, Any]:
    tags = {tag["name"]: tag["value"] for tag in row["tags"]}
    details = {"item_id": row["item_id"], "position": row["position"], "stopped": row["stopped"],
            "changed": row["changed"], "outcome": row.get("outcome"),
            "answer_before": row["answer_before"]}  # fmt: skip
    return {**tags, **({} if question is None else question.about), "evenhand": details}


def _cut(text: str) -> str:
    return text if len(text) <= _LISTED else f"{text[:_LISTED]}..."
