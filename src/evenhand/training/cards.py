"""The card of a trained model: `README.md` in the form that model hubs read.

Written at the end of a stage from what the folders say themselves, and again when probes or
measurements are there. What is not known is said to be not known.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from evenhand.core.errors import UserError
from evenhand.core.package_data import Texts, render
from evenhand.training.folders import write
from evenhand.training.probes import CERTIFICATE_FILE
from evenhand.training.record import NOTHING_TRAINED, p_text, statements

CARD = "README.md"
RESULTS = "results.json"
_ABOUT = "card.json"  # what the card was written from, to write it again
_UNKNOWN = "unknown"
_ELSEWHERE = ("recipe", "stage", "state", "outcome", "weights", "objective")
_PARTS = ("change", "changes", "sets", "primary", "secondary", "categories", "groups")

_WORDS = Texts(__package__)


def write_model_card(
    out: Path, *, stage: str, base: Path, pairs: Path, record: Mapping[str, Any]
) -> None:
    """Write the model card of a trained model, with its probes and measurements.

    Args:
        out: The folder of the model, which probes and measurements are written into too.
        stage: The name of the stage, such as "dpo".
        base: The folder of the model that the training started from.
        pairs: The folder of preference pairs.
        record: The record of the training.
    """
    about = {
        "stage": stage,
        "base": name_of(base),
        "license": _license_of(base),
        "pairs": _pairs(pairs),
        "probes": _probes_of(record.get("reward_model")),
        "record": {key: _public(value) for key, value in record.items()},
    }
    write(out / _ABOUT, json.dumps(about, indent=1, default=str) + "\n")
    rewrite(out)


def renew(out: Path, measured: Sequence[Path] = ()) -> Path:
    """Write the card of a model again, with further measurements; give the file.

    Each is the JSON of `evenhand compare`, base model first.
    """
    for before_after in measured:
        comparison = _json(before_after)
        if not any(name in comparison for name in ("guardrails", "sets")):
            raise UserError(
                f"{before_after} has no comparison. Create one with `evenhand compare RUN_BASE "
                "RUN_TRAINED --json`."
            )
        file = out / RESULTS
        others = json.loads(file.read_text()) if file.is_file() else {}
        write(file, json.dumps({**others, before_after.stem: comparison}, indent=1) + "\n")
    rewrite(out)
    return out / CARD


def rewrite(out: Path) -> None:
    """Write the card again from what the folder holds now."""
    if not (out / _ABOUT).is_file():
        raise UserError(
            f"{out} is not a model of `evenhand train`: {_ABOUT} is missing. Pass the `model` "
            "folder of a training."
        )
    about = _json(out / _ABOUT)
    probes = (
        _json(out / CERTIFICATE_FILE) if (out / CERTIFICATE_FILE).is_file() else about["probes"]
    )
    results = _json(out / RESULTS) if (out / RESULTS).is_file() else {}
    head_probes = probes if about["stage"] == "reward" else None
    record = about["record"]
    text = render(
        __package__,
        "card.md",
        about=about,
        head=yaml.safe_dump(_head(about, head_probes), sort_keys=False, allow_unicode=True),
        what=_WORDS(about["stage"]),
        pipeline=_pipeline(about["stage"]),
        nothing_trained=record.get("outcome") in NOTHING_TRAINED,
        statements=statements(record),
        results=results,
        crossed=lambda comparison: list(_crossed(comparison)),
        rows=lambda comparison: [
            _change(where, change) for where, change in _changes(comparison) if change.get("n") != 0
        ],
        probes=probes,
        recipe=record.get("recipe", {}),
        training=_training(record),
    )
    write(out / CARD, text)


def _pipeline(stage: str) -> str:
    return "text-classification" if stage == "reward" else "text-generation"


def name_of(folder: Path) -> str:
    """Runs keep their model in a folder `model`; the run's name says more."""
    return folder.parent.name if folder.name == "model" else folder.name


def _public(value: Any) -> Any:
    """A card is for others: it names folders, and not where they lie on this machine."""
    if isinstance(value, Mapping):
        return {key: _public(inner) for key, inner in value.items()} | (
            {"folder": name_of(Path(value["folder"]))} if "folder" in value else {}
        )
    return value


def _probes_of(reward: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Of the reward model that drove this training, as they were then."""
    file = Path(reward["folder"]) / CERTIFICATE_FILE if reward else None
    return _json(file) if file is not None and file.is_file() else None


def _license_of(base: Path) -> str:
    card = base / CARD
    return str(front_matter(card).get("license", _UNKNOWN)) if card.is_file() else _UNKNOWN


def front_matter(card: Path) -> dict[str, Any]:
    """The YAML between the first two lines of dashes."""
    text = card.read_text()
    if not text.startswith("---\n") or "\n---" not in text[4:]:
        return {}
    header = yaml.safe_load(text[4 : text.index("\n---", 4)])
    return header if isinstance(header, dict) else {}


def _pairs(folder: Path) -> dict[str, Any]:
    """What the pairs say of themselves, read from their columns and their report."""
    counts: dict[str, dict[str, int]] = {}
    values: dict[str, set[str]] = {name: set() for name in ("referee", "strategy", "source", "run")}
    prompts: dict[str, str] = {}
    for file in sorted(folder.glob("*/*.parquet")):
        split = file.name.partition("-")[0]
        table = pq.read_table(file, columns=[*values, "prompts"])
        counts.setdefault(file.parent.name, {})[split] = table.num_rows
        for name, distinct in values.items():
            distinct |= {str(v) for v in table[name].unique().to_pylist() if v is not None}
        for text in table["prompts"].unique().to_pylist():
            prompts |= json.loads(text) if text else {}
    report = folder / "pairs.json"
    return {
        "name": folder.name,
        "license": _license_of(folder),
        "counts": counts,
        "prompts": prompts,
        "pairing": _json(report).get("pairing", {}) if report.is_file() else {},
        **{name: sorted(distinct) for name, distinct in values.items()},
    }


def _head(about: Mapping[str, Any], probes: Mapping[str, Any] | None) -> dict[str, Any]:
    stage = about["stage"]
    head: dict[str, Any] = {
        "license": about["license"],
        "base_model": about["base"],
        "base_model_relation": "finetune",
        "datasets": [about["pairs"]["name"]],
        "library_name": "transformers",
        "pipeline_tag": _pipeline(stage),
        "language": ["en"],
        "tags": ["evenhand", "bias", stage, *(["reward-model"] if stage == "reward" else [])],
    }
    accuracy = _check(probes, "accuracy")
    if accuracy is not None:
        head["model-index"] = [_index(about, accuracy)]
    return head


def _index(about: Mapping[str, Any], accuracy: float) -> dict[str, Any]:
    metric = {"type": "accuracy", "name": _WORDS("held_out_accuracy"), "value": accuracy}
    result = {
        "task": {"type": "text-classification"},
        "dataset": {
            "type": about["pairs"]["name"],
            "name": about["pairs"]["name"],
            "split": "test",
        },
        "metrics": [metric],
    }
    return {"name": f"{about['base']}-{about['stage']}", "results": [result]}


def _check(probes: Mapping[str, Any] | None, name: str) -> float | None:
    for check in (probes or {}).get("checks", ()):
        if check["name"] == name and check["estimate"] is not None:
            return float(check["estimate"])
    return None


def _crossed(comparison: Mapping[str, Any]) -> Iterator[str]:
    """The guardrails that a comparison, or each of several, shows to be crossed."""
    name = f"{comparison['benchmark']}: " if "benchmark" in comparison else ""
    for line in comparison.get("guardrails", ()):
        if isinstance(line, str):  # a comparison without states lists sentences
            yield name + line
        elif line["state"] == "violated":
            says = line["says"]
            yield name + (says if isinstance(says, str) else says["text"])
    for part in comparison.get("sets", ()):
        yield from _crossed(part)


def _changes(node: Any, where: Sequence[str] = ()) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every before/after/difference in a comparison, with where it stands in it."""
    if isinstance(node, Mapping):
        if _is_change(node):
            yield ", ".join((*where, str(node["name"]))), node
            return
        labels = (
            *where,
            *(str(node[key]) for key in ("benchmark", "set", "category") if key in node),
        )
        for key, value in node.items():
            says_more = key not in _PARTS and not _is_change(value)
            yield from _changes(value, (*labels, str(key)) if says_more else labels)
    elif isinstance(node, list):
        for value in node:
            yield from _changes(value, where)


def _is_change(node: Any) -> bool:
    return isinstance(node, Mapping) and {"name", "before", "after", "difference"} <= node.keys()


def _change(where: str, change: Mapping[str, Any]) -> str:
    if change["difference"] is None:
        return f"| {where} | | | undefined: {change.get('undefined')} | | | |"
    holm = change.get("p_holm")
    p = change.get("p") if holm is None else holm
    low, high = change.get("low"), change.get("high")
    interval = f"{low:+.3f} to {high:+.3f}" if low is not None and high is not None else ""
    shown = "" if p is None else p_text(p)
    shown += "" if holm is None else " (Holm)"
    return (
        f"| {where} | {change['before']:.3f} | {change['after']:.3f} | {change['difference']:+.3f} "
        f"| {interval} | {shown} | {change.get('n', '')} |"
    )


def _training(record: Mapping[str, Any]) -> list[str]:
    """The lines of what a record says in addition to its recipe; a blank one comes first."""
    rest = {key: value for key, value in record.items() if key not in _ELSEWHERE}
    lines = [f"- {key.replace('_', ' ')}: {_said(value)}" for key, value in rest.items() if value]
    return ["", *lines] if lines else []


def _said(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_said(inner)}" for key, inner in value.items())
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def _json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read as JSON: {error}") from None
    if not isinstance(content, dict):
        raise UserError(f"{file} is not what evenhand writes: it holds no object")
    return content
