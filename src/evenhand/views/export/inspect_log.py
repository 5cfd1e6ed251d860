"""A run as a log of Inspect (`.eval`): a ZIP archive that `inspect view` and its reader open."""

import json
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenhand.core import message_of
from evenhand.findings.estimates import Estimate
from evenhand.interop import ExternalItem
from evenhand.runs.store.folder import as_file_name
from evenhand.views.export.exported import ExportedRun, Row, at

_FORMAT = 2  # of Inspect's logs, from inspect_ai 0.3
_TIME = (1980, 1, 1, 0, 0, 0)  # the first that a ZIP archive can say: the same run, the same bytes
_COUNTED = ("model", "role", "prompt_tokens", "completion_tokens", "error")  # of a call
ONE_WAY = "made by evenhand from a run of its own; Inspect did not run it"


def write(of: ExportedRun, folder: Path) -> list[str]:
    """Write the log, sample by sample, so that memory does not grow with the conversations."""
    names, values, tally = _names(of), of.measured(), _LogTally()
    listing: list[bytes] = []
    with zipfile.ZipFile(folder / "log.eval", "x") as archive:
        start = {"version": _FORMAT, "eval": _eval(of, list(names.values())), "plan": _plan(of)}
        _put(archive, "_journal/start.json", _json(start))
        for row, turns in of.items():
            question = None if of.asked is None else of.asked[row["item_id"]]
            item_values = values.get(row["item_id"], {})
            entry = sample(names[row["position"]], row, turns, question, item_values)
            _put(archive, f"samples/{entry['id']}_epoch_1.json", _json(entry))
            listing.append(_json(listed(entry)))
            tally.add(entry, turns)
        _put(archive, "summaries.json", b"[" + b",".join(listing) + b"]")
        _put(archive, "header.json", _json(start | tally.ending(of)))
    return ["log.eval"]


class _LogTally:
    """What is added up while samples are written."""

    def __init__(self) -> None:
        self.answered = self.failed = 0
        self.scored: Counter[str] = Counter()
        self._moments: list[int] = []
        self._turns: list[Row] = []

    def add(self, entry: Mapping[str, Any], turns: list[Row]) -> None:
        self.answered += "error" not in entry
        self.failed += "error" in entry
        self.scored.update(list(entry["scores"] or {}))
        for turn in turns:
            times = turn["started_us"], ended(turn)
            self._moments = [min([times[0], *self._moments]), max([times[1], *self._moments])]
            self._turns.append({key: turn[key] for key in _COUNTED})

    def ending(self, of: ExportedRun) -> dict[str, Any]:
        """The rest of the header: how it ended, the numbers, and what it took."""
        began, finished = map(at, self._moments) if self._moments else ("", "")
        return {
            "status": "cancelled" if of.not_run or of.run.open else "success",
            "results": {
                "total_samples": of.run.planned,
                "completed_samples": self.answered,
                "logged_samples": self.answered + self.failed,
                "scores": list(_results(of, self)),
                "metadata": {"failed": self.failed, "not_run": of.not_run},
            },
            "stats": {
                "started_at": began,
                "completed_at": finished,
                "model_usage": usage(self._turns, "model"),
                "role_usage": usage(self._turns, "role"),
            },
        }


def _results(of: ExportedRun, tally: _LogTally) -> Iterator[dict[str, Any]]:
    """The numbers of the report, each with the ends of its interval."""
    if of.report is None:
        return
    for estimate in of.report.estimates:
        measure = of.report.instrument.measure(estimate.name)
        yield {
            "name": estimate.name,
            "scorer": estimate.name,
            **_counts(estimate.name, of, tally),
            "metrics": {name: {"name": name, "value": value} for name, value in _parts(estimate)},
            "metadata": {
                "label": measure.label,
                "better": measure.better,
                "interval": f"95% CI over {estimate.clusters} {of.report.instrument.clusters}",
                "undefined": estimate.undefined,
            },
        }


def _counts(name: str, of: ExportedRun, tally: _LogTally) -> dict[str, int]:
    """How many samples have this number, where there is one per item."""
    if of.values is None or name not in of.values.columns:
        return {}
    scored = tally.scored[name]
    return {"scored_samples": scored, "unscored_samples": tally.answered + tally.failed - scored}


def _parts(estimate: Estimate) -> list[tuple[str, float]]:
    parts = (("estimate", estimate.value), ("low", estimate.low), ("high", estimate.high))
    return [(name, value) for name, value in parts if value is not None]


def _eval(of: ExportedRun, names: list[str]) -> dict[str, Any]:
    record, digests = of.run.record, of.run.digests()
    made_by = record.source.get("benchmark") or record.source["kind"]
    metadata = {
        "made_by": f"evenhand {of.evenhand}",
        "says": ONE_WAY,
        "method": record.method["name"],
        "changed": of.run.totals().changed,
        "seed": record.seed,
        "sha256": digests,
        "versions": record.versions,
    }
    return {
        "eval_id": digests["answers"][:22],
        "run_id": digests["run.json"][:22],
        "task_id": digests["run.json"][22:44],
        "created": record.created,
        "task": f"evenhand/{made_by}",
        "task_version": str(record.source.get("version", 0)),
        "solver": f"evenhand/{record.method['name']}",
        "solver_args": record.method["settings"],
        "tags": ["made by evenhand"],
        "dataset": {
            "name": of.report.instrument.title if of.report else made_by,
            "samples": of.run.planned,
            "sample_ids": names,
            "shuffled": False,
        },
        "model": of.model,
        "config": {"epochs": 1},
        "packages": {"evenhand": of.evenhand},
        "metadata": metadata,
        "scorers": [{"name": name} for name in _scorers(of)],
    }


def _scorers(of: ExportedRun) -> list[str]:
    measures = [measure.name for measure in of.report.instrument.measures] if of.report else []
    return [*measures, CHOICE] if of.asked is not None else measures


def _plan(of: ExportedRun) -> dict[str, Any]:
    method = of.run.record.method
    step = {"solver": f"evenhand/{method['name']}", "params": method["settings"]}
    return {"name": "plan", "steps": [step]}


def _names(of: ExportedRun) -> dict[int, str]:
    """Name the sample of each position: as the item, where that tells all items apart and is the
    name of a file."""
    rows = of.run.results().select("position", "item_id").collect().rows()
    plain = {position: as_file_name(item) for position, item in rows}
    if len(set(map(str.lower, plain.values()))) == len(plain):
        return plain
    return {position: f"{position}-{name}" for position, name in plain.items()}


def _json(value: Any) -> bytes:
    """Every sign that cannot be seen is an escape. A value that is not scored is NaN, as Inspect
    writes it."""
    return json.dumps(value, separators=(",", ":")).encode()


def _put(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    member = zipfile.ZipInfo(name, _TIME)
    member.create_system = 3  # Unix, wherever it is made
    member.external_attr = 0o644 << 16
    archive.writestr(member, data, zipfile.ZIP_DEFLATED)


_STOPS = {"stop": "stop", "length": "max_tokens", "content_filter": "content_filter"}
_LISTED = 1024  # characters of a text in the list of samples, as Inspect cuts it
_WRONG_GOLD = "no right answer is known: the record's own contradicts its text"
CHOICE = "choice"  # Inspect's own name for the scorer that reads which option was taken


def sample(
    name: str,
    row: Row,
    turns: Sequence[Row],
    question: ExternalItem | None,
    values: Mapping[str, float],
) -> dict[str, Any]:
    """Export an item as a sample of an Inspect log. An item without an answer has an error and no
    score, so that it does not count as incorrect.

    Args:
        name: The identifier of the sample.
        row: The row of the results.
        turns: The model calls of the item, in their order.
        question: The question with its options; None for free text.
        values: The value of each metric for this item.
    """
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
    """Add up the tokens by model or role. If a call that was answered did not report its tokens,
    the sum is left out: it would look like all of them."""
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
            turn_text = message_of(message).text
            yield {"role": message["role"], "content": turn_text, "metadata": about}
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
