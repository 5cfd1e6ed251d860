"""The data card of a folder of pairs: `README.md`, whose head names the configurations."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import yaml

from evenhand.debates.account import FromDebates, FromItems, PairsReport
from evenhand.debates.splits import Side

UNKNOWN_LICENSE = "unknown"

_FROM = {
    "debate": "Statements of debates between roles played by a language model. A referee, also a "
    "model, scored each from 0 to 10; lower is less biased. A pair has a statement with a score of "
    "at most {threshold:g} (chosen) and one above it (rejected). Paired by: {strategy}. "
    "All {low_to_train:,} low statements of topics that are not held out, in a pair or not, are in "
    "the files `low-*.parquet`, which no configuration loads.",
    "revision": "Answers that evaluators refused (rejected) and the revisions that they accepted "
    "instead (chosen), where their score of bias fell. Scores are brought to 0-10, lower is less "
    "biased; a margin is the fall as a share of the evaluator's scale.",
    "items": "Sentences with a blank, filled with the word of a stereotype (rejected) and with its "
    "opposite or with a word that has nothing to do with it (chosen, half of the time each; "
    "`role_chosen` says which). Nobody scored them: `score_chosen` and `score_rejected` are null, "
    "and `margin` is 0, which means that it is not known. `topic` is the sentence without what "
    "varies.",
}
_COLUMNS = """\
| column | what it holds |
| --- | --- |
| `prompt`, `chosen`, `rejected` | messages with `role` and `content` |
| `score_chosen`, `score_rejected` | 0 to 10, lower is less biased; null where nobody scored |
| `margin` | the gap of the scores / 10; 0 where nobody scored |
| `topic`, `topic_rejected` | by which the split is made; two only where the strategy is `any` |
| `bias_type` | also the name of the configuration |
| `role_chosen`, `role_rejected`, `round_chosen`, `round_rejected` | who said it and when |
| `referee` | the model that scored |
| `strategy`, `source`, `run` | how the two were brought together, and from what |
| `prompts` | JSON: each prompt or file behind it with its sha256 |
"""


def card(types: Mapping[str, Sequence[Side]], report: PairsReport, license: str) -> str:
    head = yaml.safe_dump(_head(types, report, license), sort_keys=False, allow_unicode=True)
    parts = [
        f"---\n{head}---",
        "# Preference pairs: less biased over more biased",
        _origin(report),
        _counts(report),
        _limits(report, license),
        "## Columns",
        _COLUMNS,
        f"All numbers: `pairs.json`. Load with `datasets.load_dataset(folder, "
        f'"{next(iter(types))}")`.',
    ]
    return "\n\n".join(parts) + "\n"


def _head(types: Mapping[str, Sequence[Side]], report: PairsReport, license: str) -> dict[str, Any]:
    every: dict[Side, list[str]] = {}
    for name, present in types.items():
        for side in present:
            every.setdefault(side, []).append(_file(name, side))
    configs = [{"config_name": "default", "data_files": _splits(every)}]
    for name, present in types.items():
        files = {side: [_file(name, side)] for side in present}
        configs.append({"config_name": name, "data_files": _splits(files)})
    return {
        "license": license,
        "pretty_name": "Pairs for less bias",
        "tags": ["preference", "reward-model", "bias", report.origin.source],
        "configs": configs,
    }


def _splits(files: Mapping[Side, list[str]]) -> list[dict[str, Any]]:
    return [{"split": side, "path": paths} for side, paths in files.items()]


def _file(bias_type: str, side: Side) -> str:
    return f"{bias_type}/{side}-00000.parquet"


def _origin(report: PairsReport) -> str:
    origin = report.origin
    if not isinstance(origin, FromDebates):
        return _FROM[origin.source]
    return _FROM[origin.source].format(
        **asdict(origin.pairing), low_to_train=origin.statements.low_to_train
    )


def _counts(report: PairsReport) -> str:
    pairs = report.pairs
    names = sorted({*pairs["train"], *pairs["test"]})
    rows = [
        f"| {name} | {pairs['train'].get(name, 0):,} | {pairs['test'].get(name, 0):,} |"
        for name in names
    ]
    topics = report.topics
    return "\n".join(
        [
            "| bias type | train | test |",
            "| --- | ---: | ---: |",
            *rows,
            "",
            f"Split by topic: {topics['train']:,} topics to train on, {topics['test']:,} held out; "
            "topics that say nearly the same are on the same side.",
        ]
    )


def _limits(report: PairsReport, license: str) -> str:
    lines = ["## What to know before training on it", ""]
    for side, figures in report.shortcuts.items():
        if figures:
            lines.append(
                f"- {side}: chosen has {figures.words.chosen:.1f} words on average, rejected "
                f'{figures.words.rejected:.1f}; the rule "the shorter one wins" is right for '
                f"{figures.shorter_wins:.1%}."
            )
    if isinstance(report.origin, FromItems):
        lines.append(
            "- The words that have nothing to do with the stereotype are never rejected; a reward "
            "model can learn those words and nothing else."
        )
    else:
        lines.append("- The scores are a model's. How far it agrees with people is not known.")
    if license == UNKNOWN_LICENSE:
        lines.append(
            "- Licence: not known. The texts were written by a model, or taken from a file, whose "
            "terms hold; nobody named them."
        )
    else:
        lines.append(f"- Licence: {license}, as named by who made this folder.")
    return "\n".join(lines)
