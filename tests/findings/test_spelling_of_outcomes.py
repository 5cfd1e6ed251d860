"""A three-way outcome is spelled as `core/conclusions.py` spells it, and in no other way."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

import evenhand
from evenhand.core.conclusions import ChangeResult, CheckResult, GuardrailResult, Outcome
from evenhand.findings.certificate import Certificate
from evenhand.findings.pack_manifest import PackManifest
from evenhand.findings.papers import Paper
from evenhand.findings.screen_file import ScreenFile
from evenhand.findings.screened import ScreenLook
from evenhand.validation.conformance.checks import ToolScores

SRC = Path(evenhand.__file__).parent
SPELLINGS = (
    frozenset(Outcome),
    frozenset(get_args(CheckResult)),
    frozenset(get_args(ChangeResult)),
    frozenset(get_args(GuardrailResult)),
)
# Words that say what is concluded, of an effect or a change.
WORDS = {
    *frozenset().union(*SPELLINGS), "shown", "not shown", "not known", "crossed", "kept", "steady",
    "alarm", "broken", "better", "worse", "shifted", "equivalent", "beyond the margin",
    "within the margin", "not measured", "undecided", "unclear", "significant",
}  # fmt: skip
# Words of `SPELLINGS` that something else may have too, and what it is.
AUDIT = {"not_measured", "measured"}  # a check of an audit is a number for which no margin was set
# Types that do not use them yet. The list may become shorter, and no type may come to it.
LEFT = {
    ("training/record.py", "improved, inconclusive, not_finite, regressed, too_few_steps"),
}


def literals(tree: ast.AST) -> Iterator[frozenset[str]]:
    """The words of every `Literal[...]` and of every enumeration of words."""
    for node in ast.walk(tree):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Literal"):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        elif isinstance(node, ast.ClassDef) and any("Enum" in ast.unparse(b) for b in node.bases):
            parts = [each.value for each in node.body if isinstance(each, ast.Assign)]
        words = [part.value for part in parts if isinstance(part, ast.Constant)]
        yield frozenset(word for word in words if isinstance(word, str))


def of_schema(schema: object) -> Iterator[frozenset[str]]:
    """The words of every enumeration within a JSON schema."""
    if isinstance(schema, dict):
        if isinstance(schema.get("enum"), list):
            yield frozenset(word for word in schema["enum"] if isinstance(word, str))
        for part in schema.values():
            yield from of_schema(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from of_schema(part)


def is_another_spelling(words: frozenset[str]) -> bool:
    """Two words of a conclusion, or more, that are no spelling of `core/conclusions.py`."""
    known = any(words - AUDIT <= spelling for spelling in SPELLINGS)
    return len(words) > 2 and len(words & WORDS) > 1 and not known


def test_no_type_spells_an_outcome_in_another_way() -> None:
    found = {
        (str(file.relative_to(SRC)), ", ".join(sorted(words)))
        for file in SRC.rglob("*.py")
        for words in literals(ast.parse(file.read_text(encoding="utf-8")))
        if is_another_spelling(words)
    }
    assert found == LEFT


@pytest.mark.parametrize(
    "model", [Certificate, PackManifest, Paper, ScreenFile, ScreenLook, ToolScores]
)
def test_no_schema_of_a_file_spells_an_outcome_in_another_way(model: type[BaseModel]) -> None:
    enums = of_schema(model.model_json_schema())
    assert [sorted(words) for words in enums if is_another_spelling(words)] == []


@pytest.mark.parametrize(
    ("code", "another"),
    [
        ('Verdict = Literal["pass", "fail", "open"]', True),
        ('x: Literal["better", "worse", "unclear"] | None = None', True),
        ('class Told(StrEnum):\n    A = "shown"\n    B = "not shown"\n    C = "not known"', True),
        ('Result = Literal["pass", "fail", "inconclusive", "error"]', False),
        ('Result = Literal["improved", "regressed", "inconclusive"]', False),
        ('Role = Literal["method", "reference", "vote"]', False),
    ],
)
def test_another_spelling_is_found(code: str, another: bool) -> None:
    assert any(map(is_another_spelling, literals(ast.parse(code)))) == another
