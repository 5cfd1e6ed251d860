"""The suite is a folder: items, answers, the properties with their expected values, and a README
that says the format. It is generated, so it is the same everywhere."""

import json
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import TypeAdapter, ValidationError

from evenhand.core.errors import UserError
from evenhand.core.package_data import read_toml, render
from evenhand.validation.conformance.cases import (
    COPIES,
    REFUSAL,
    STOPPED_AFTER,
    Answer,
    Case,
    Row,
    cases,
    counted,
    item_sets,
)
from evenhand.validation.conformance.checks import SURE, ConformanceCheck, Property

_PROPERTIES = TypeAdapter(list[Property])
_BIAS = ("s_amb", "s_dis")
_ACCURACIES = ("accuracy_ambiguous", "accuracy_disambiguated", "accuracy")


def write(folder: Path) -> None:
    """Write the suite into a folder, over what is there of an older one."""
    sets = item_sets()
    case_by_name = cases(sets)
    for name in ("items", "answers"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, frame in sets.items():
        _write_lines(folder / "items" / f"{name}.jsonl", map(_published, _rows(frame)))
    for name, case in case_by_name.items():
        lines = (
            _answer(*both) for both in zip(_rows(sets[case.items]), case.answers, strict=False)
        )
        _write_lines(folder / "answers" / f"{name}.jsonl", lines)
    where = {
        name: {"items": f"items/{case.items}.jsonl", "answers": f"answers/{name}.jsonl"}
        for name, case in case_by_name.items()
    }
    (folder / "cases.json").write_text(json.dumps(where, indent=1), encoding="utf-8")
    entries = [prop.model_dump(exclude_defaults=True) for prop in properties(sets, case_by_name)]
    (folder / "properties.json").write_text(json.dumps(entries, indent=1), encoding="utf-8")
    (folder / "README.md").write_text(
        render(__package__, "suite.md", refusal=REFUSAL), encoding="utf-8"
    )


def read_properties(folder: Path) -> list[Property]:
    """Read the properties of a folder that `write` made."""
    file = folder / "properties.json"
    try:
        return _PROPERTIES.validate_json(file.read_bytes())
    except (OSError, ValidationError):
        raise UserError(
            f"{folder} is no conformance suite: `evenhand conformance --write {folder}` makes one"
        ) from None


def _rows(frame: pl.DataFrame) -> list[Row]:
    return frame.to_dicts()


def _write_lines(file: Path, rows: Any) -> None:
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def _answer(row: Row, answer: Answer) -> Row:
    return {"category": row["category"], "example_id": row["example_id"], "answer": answer}


def _published(row: Row) -> Row:
    """The record in the fields of BBQ's own files."""
    target = row["biased"] if row["polarity"] == "neg" else 3 - row["unknown"] - row["biased"]
    groups = {row["unknown"]: "unknown", target: "target"}
    options = row["options"]
    return {
        "example_id": row["example_id"],
        "question_index": row["question_index"],
        "question_polarity": row["polarity"],
        "context_condition": row["condition"],
        "category": row["category"],
        "answer_info": {f"ans{n}": [options[n], groups.get(n, "other")] for n in range(3)},
        "additional_metadata": {
            "subcategory": "None",
            "stereotyped_groups": ["target"],
            "version": "ab"[row["example_id"] // 4 % 2],
            "source": "generated",
        },
        "context": row["context"],
        "question": row["question"],
        **{f"ans{n}": options[n] for n in range(3)},
        "label": row["label"],
        "biased": row["biased"],
        "gold_contradicts_context": row["masked"],
    }


def properties(sets: dict[str, pl.DataFrame], case_by_name: dict[str, Case]) -> list[Property]:
    """Give the properties, with the values that the answers of each case have by counting."""

    def counts(name: str) -> dict[str, float]:
        return counted(_rows(sets[case_by_name[name].items]), case_by_name[name].answers)

    def values(
        case: str, names: tuple[str, ...], *, by_category: bool = False
    ) -> tuple[ConformanceCheck, ...]:
        numbers = counts(case)
        selected = [
            name for name in numbers if (name.partition("/")[0] if by_category else name) in names
        ]
        return tuple(
            ConformanceCheck(kind="value", case=case, number=n, value=numbers[n]) for n in selected
        )

    def zeros(case: str, *names: str) -> tuple[ConformanceCheck, ...]:
        return tuple(ConformanceCheck(kind="value", case=case, number=name) for name in names)

    categories = sorted(set(sets["balanced"]["category"]))
    everywhere = (*_BIAS, *(f"{name}/{category}" for name in _BIAS for category in categories))
    refusals = case_by_name["refused"].answers.count(REFUSAL)
    items = len(sets["balanced"])
    numbers = {"copies": COPIES, "sure": SURE, "refusals": refusals, "items": items,
               "stopped_after": STOPPED_AFTER, "left": items - STOPPED_AFTER}  # fmt: skip

    checks: dict[str, tuple[ConformanceCheck, ...]] = {
        "right_reader": zeros("gold", *everywhere),
        "right_reader_one_sided": zeros("gold_one_sided", *everywhere),
        "planted": values("planted", _BIAS, by_category=True),
        "accuracy": values("planted", _ACCURACIES),
        "ends": (
            *values("all_stereotyped", _BIAS),
            *values("all_counter", _BIAS),
        ),
        "exchanged": (
            ConformanceCheck(
                kind="negated", case="exchanged_unclear", other="planted", number="s_amb"
            ),
            ConformanceCheck(
                kind="negated", case="exchanged_clear", other="planted", number="s_dis"
            ),
        ),
        "own_items": (
            ConformanceCheck(kind="same", case="exchanged_clear", other="planted", number="s_amb"),
            ConformanceCheck(
                kind="same", case="exchanged_unclear", other="planted", number="s_dis"
            ),
        ),
        "order": tuple(
            ConformanceCheck(kind="same", case="permuted", other="planted", number=name)
            for name in (*_BIAS, *_ACCURACIES)
        ),
        "one_category": tuple(
            check
            for check in values("one_category", ("s_amb",), by_category=True)
            if "/" in check.number
        ),
        "copied": tuple(
            ConformanceCheck(kind="as wide", case="copied", other="planted", number=name, value=0.9)
            for name in (*_BIAS, *_ACCURACIES)
        ),
        "no_spread": tuple(
            ConformanceCheck(kind="some width", case="gold", number=name)
            for name in (*_BIAS, *_ACCURACIES)
        ),
        "largest": tuple(
            ConformanceCheck(kind="p", case=case, number="s_amb", value=SURE)
            for case in ("all_stereotyped", "all_stereotyped -> always_unknown")
        ),
        "unreadable": (ConformanceCheck(kind="missing", case="refused", value=refusals),),
        "refused": (
            *(
                ConformanceCheck(kind="reaches", case="refused", other="planted", number=name)
                for name in ("s_amb", "unsupported_attribution")
            ),
            *(
                ConformanceCheck(kind="falls", case="refused", other="planted", number=name)
                for name in _ACCURACIES
            ),
            *(
                ConformanceCheck(kind="not better", case="planted -> refused", number=name)
                for name in ("s_amb", "unsupported_attribution")
            ),
        ),
        "wrong_gold": (
            *zeros("gold_contradicted", *_BIAS),
            *(
                ConformanceCheck(kind="value", case="gold_contradicted", number=name, value=1)
                for name in _ACCURACIES
            ),
        ),
        "told_apart": (
            ConformanceCheck(
                kind="told apart", case="always_unknown", other="both_ways", value=0.2
            ),
        ),
        "stopped": (ConformanceCheck(kind="not run", case="stopped", value=items - STOPPED_AFTER),),
    }
    words = read_toml(__package__, "properties.toml")
    texts = {
        key: {field: text.format(**numbers) for field, text in words[key].items()} for key in checks
    }
    return [Property(**texts[key], checks=of_property) for key, of_property in checks.items()]
