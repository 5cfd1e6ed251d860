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

from evenhand.errors import UserError
from evenhand.training.folders import write
from evenhand.training.gate import FILE
from evenhand.training.record import NOTHING_TRAINED, statements

CARD = "README.md"
PROBES = FILE
RESULTS = "results.json"
_ABOUT = "card.json"  # what the card was written from, to write it again
_UNKNOWN = "unknown"
_ELSEWHERE = ("recipe", "stage", "state", "outcome", "weights", "objective")
_PARTS = ("change", "changes", "sets", "primary", "secondary", "categories", "groups")

_STAGES = {
    "sft": ("text-generation", "Supervised fine-tuning on the less biased statement of each pair."),
    "reward": (
        "text-classification",
        "A reward model: one number for a prompt and an answer, higher for the less biased one. "
        'Call a pipeline with `function_to_apply="none"` for the raw number; '
        "`reward_scale.json` brings it to mean 0 and deviation 1.",
    ),
    "dpo": ("text-generation", "Direct preference optimisation on the pairs."),
    "rloo": (
        "text-generation",
        "Reinforcement learning from a reward model, with a leave-one-out baseline (RLOO).",
    ),
    "ppo": (
        "text-generation",
        "Reinforcement learning from a reward model by proximal policy optimisation (PPO).",
    ),
}
_LIMITS = """\
## Intended use and limits

Meant for research on social bias in language models, beside the model it was trained from.

- Bias was scored by a model. How far its scores agree with people is not known from this card.
- Only the bias types below were trained on, in English unless the pairs say otherwise.
- A model that scores as less biased may refuse more or say less: read the guardrails first.
- It is no safety filter, and no ground for a decision about a person."""


def write_model_card(
    out: Path, *, stage: str, base: Path, pairs: Path, record: Mapping[str, Any]
) -> None:
    """`out` is the model's folder. What probes and measurements it holds goes into the card."""
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


def add_results(out: Path, before_after: Path) -> None:
    """The JSON of `evenhand compare`, base model first, into the card. Several may be added."""
    comparison = _json(before_after)
    if not any(name in comparison for name in ("guardrails", "red_lines", "sets")):
        raise UserError(
            f"{before_after} holds no comparison; make one with "
            "`evenhand compare RUN_BASE RUN_TRAINED --json`"
        )
    file = out / RESULTS
    others = json.loads(file.read_text()) if file.is_file() else {}
    others[before_after.stem] = comparison
    write(file, json.dumps(others, indent=1) + "\n")
    rewrite(out)


def renew(out: Path, measured: Sequence[Path] = ()) -> Path:
    """Write the card of a model again, with further measurements; give the file."""
    for comparison in measured:
        add_results(out, comparison)
    rewrite(out)
    return out / CARD


def rewrite(out: Path) -> None:
    """The card anew from what the folder holds now."""
    if not (out / _ABOUT).is_file():
        raise UserError(f"{out} is no model that `evenhand train` wrote: it has no {_ABOUT}")
    about = _json(out / _ABOUT)
    probes = _json(out / PROBES) if (out / PROBES).is_file() else about["probes"]
    results = _json(out / RESULTS) if (out / RESULTS).is_file() else {}
    head_probes = probes if about["stage"] == "reward" else None
    head = yaml.safe_dump(_head(about, head_probes), sort_keys=False, allow_unicode=True)
    pipeline, what = _STAGES[about["stage"]]
    parts = [
        f"---\n{head}---",
        f"# {about['base']}, {about['stage']}{_aim(about['record'])}",
        f"{what} Trained by `evenhand train {about['stage']}` from `{about['base']}`.",
        _changed(about["record"]),
        *(_result(name, comparison) for name, comparison in results.items()),
        _no_results(pipeline) if not results else "",
        _probes(probes) if about["stage"] in ("reward", "rloo", "ppo") else "",
        _data(about["pairs"]),
        _training(about["record"]),
        _LIMITS,
    ]
    write(out / CARD, "\n\n".join(part for part in parts if part) + "\n")


def _aim(record: Mapping[str, Any]) -> str:
    return ": nothing trained" if record.get("outcome") in NOTHING_TRAINED else " for less bias"


def _changed(record: Mapping[str, Any]) -> str:
    lines = statements(record)
    return "\n".join(
        ["## What the training changed", "", *(f"- {line}" for line in lines)] if lines else []
    )


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
    file = Path(reward["folder"]) / PROBES if reward else None
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
        "pipeline_tag": _STAGES[stage][0],
        "language": ["en"],
        "tags": ["evenhand", "bias", stage, *(["reward-model"] if stage == "reward" else [])],
    }
    accuracy = _check(probes, "accuracy")
    if accuracy is not None:
        head["model-index"] = [_index(about, accuracy)]
    return head


def _index(about: Mapping[str, Any], accuracy: float) -> dict[str, Any]:
    metric = {"type": "accuracy", "name": "held-out pairs in the right order", "value": accuracy}
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


def _result(name: str, comparison: Mapping[str, Any]) -> str:
    lines = [f"## Before and after: {name}", ""]
    crossed = [*_crossed(comparison)]
    lines += [f"- **guardrail crossed**: {line}" for line in crossed]
    if not crossed:
        lines.append("No guardrail crossed.")
    lines += ["", "| | before | after | change | 95 % interval | p | n |"]
    lines.append("| --- | ---: | ---: | ---: | --- | ---: | ---: |")
    changes = [(where, change) for where, change in _changes(comparison) if change.get("n") != 0]
    lines += [_change(where, change) for where, change in changes]
    return "\n".join(lines)


def _crossed(comparison: Mapping[str, Any]) -> Iterator[str]:
    """The red lines that a comparison, or each of several, shows to be crossed."""
    yield from comparison.get("guardrails", ())
    name = f"{comparison['benchmark']}: " if "benchmark" in comparison else ""
    for line in comparison.get("red_lines", ()):
        if line["state"] == "crossed":
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
    p_text = "" if p is None else f"{p:.3f}" if p >= 0.001 else "<0.001"
    p_text += "" if holm is None else " (Holm)"
    return (
        f"| {where} | {change['before']:.3f} | {change['after']:.3f} | {change['difference']:+.3f} "
        f"| {interval} | {p_text} | {change.get('n', '')} |"
    )


def _no_results(pipeline: str) -> str:
    if pipeline == "text-classification":
        return ""
    return (
        "## Before and after\n\nNot measured yet: whether bias fell is not known. "
        "`evenhand measure` both models, `evenhand compare` the runs with `--json`, and "
        "`evenhand train card MODEL --measured compare.json`."
    )


def _probes(probes: Mapping[str, Any] | None) -> str:
    if probes is None:
        return "## Audit of the reward model\n\nIt was not audited: what it prefers is not known."
    verdict = (
        "passed" if probes["state"] == "pass" else "**not passed**: it should not drive training"
    )
    lines = [
        f"## Audit of the reward model: {verdict}",
        "",
        "| check | bar | found | |",
        "| --- | --- | ---: | --- |",
    ]
    for check in probes["checks"]:
        value = check["estimate"]
        text = "not known" if value is None else f"{value:.3f}"
        lines.append(f"| {check['name']} | {check['bar']} | {text} | {check['state']} |")
    return "\n".join(lines)


def _data(pairs: Mapping[str, Any]) -> str:
    lines = [f"## Data: `{pairs['name']}`", "", "| bias type | train | test |"]
    lines.append("| --- | ---: | ---: |")
    for name, counts in pairs["counts"].items():
        lines.append(f"| {name} | {counts.get('train', 0):,} | {counts.get('test', 0):,} |")
    lines.append("")
    for label, key in (("Referee", "referee"), ("Paired by", "strategy"), ("Source", "source")):
        lines.append(f"- {label}: {', '.join(pairs[key]) or _UNKNOWN}")
    if "threshold" in pairs["pairing"]:
        threshold = pairs["pairing"]["threshold"]
        lines.append(f"- Threshold: chosen at most {threshold:g} of 10, rejected above it")
    lines.append(f"- Licence of the pairs: {pairs['license']}")
    lines += [f"- Prompt `{name}`: sha256 `{sha}`" for name, sha in pairs["prompts"].items()]
    return "\n".join(lines)


def _training(record: Mapping[str, Any]) -> str:
    lines = ["## Training", "", "| setting | value | from |", "| --- | ---: | --- |"]
    for name, setting in record.get("recipe", {}).items():
        lines.append(f"| {name} | {setting['value']} | {setting['source']} |")
    lines.append("")
    rest = {key: value for key, value in record.items() if key not in _ELSEWHERE}
    lines += [f"- {key.replace('_', ' ')}: {_said(value)}" for key, value in rest.items() if value]
    return "\n".join(lines).rstrip()


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
