"""Pages, help texts and labels use the field's terms: retired terms do not return."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from evenhand.cli.app import leaves

ROOT = Path(__file__).parents[2]
# A term that was given up, and the term of today.
RETIRED = {
    r"red lines?\b": "guardrail",
    r"shown (better|worse)\b": "improved, regressed",
    r"too few to tell": "inconclusive",
    r"(?-i:NOT KNOWN)": "inconclusive",
    r"% sure\b": "95% CI",
    r"\d %(?!\w)": "95%",
    r"held against": "compared with",
    r"\bspoken of\b": "mentioned",
    r"without grounds": "unsupported",
    r"unclear questions?\b": "ambiguous context",
    r"where the text does\b": "disambiguated context",
    r"judge of (the )?support": "context-support classifier",
    r"\bbroken off\b": "cut off",
    r"\bgone on with\b": "resumed",
    r"\bwhoever\b": "who",
    r"\bdummies\b": "trivial baselines",
    r"\bharms check\b": "audit harm",
    r"\bevenhand (swap|rate|watch|pack|view|debate|pairs|screen|self-test)\b": "today's",
    r"\bevenhand runs report\b": "report",
    r"--(until|families|own-families|chosen|missed|false-alarms|in-flight|take-over)\b": "today's",
    r"\bfront door\b": "public API",
    r"\brun director(y|ies)\b": "run folder",
    r"\[cast\]": "[roles]",
}


def texts() -> dict[str, str]:
    """Everything that a user reads: pages, help, the words of benchmarks, and printed commands."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    by_place = {str(page.relative_to(ROOT)): page.read_text("utf-8") for page in pages}
    for path, command in leaves():
        helps = [command.help, *(parameter.help for parameter in command.params)]
        by_place[f"evenhand {' '.join(path)}"] = "\n".join(filter(None, helps))
    for words in (ROOT / "src/evenhand").rglob("words.toml"):
        labels = tomllib.loads(words.read_text("utf-8"))
        by_place[str(words.relative_to(ROOT))] = repr(labels)
    for module in (ROOT / "src/evenhand").rglob("*.py"):
        commands = [
            node.value
            for node in ast.walk(ast.parse(module.read_text("utf-8")))
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and "evenhand " in node.value
        ]
        by_place[str(module.relative_to(ROOT))] = "\n".join(commands)
    return by_place


TEXTS = texts()


@pytest.mark.parametrize("term", RETIRED)
def test_no_page_help_or_label_uses_a_retired_term(term: str) -> None:
    used = {
        place: match[0]
        for place, text in TEXTS.items()
        if (match := re.search(term, text, re.IGNORECASE))
    }
    assert not used, f"say {RETIRED[term]}"


def test_the_texts_of_all_kinds_are_looked_at() -> None:
    assert {"README.md", "docs/bbq.md", "evenhand measure bbq"} <= TEXTS.keys()
    assert any(place.endswith("words.toml") for place in TEXTS)
