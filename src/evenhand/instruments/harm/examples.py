"""Labelled examples of a harm: a file of JSON lines, read strictly.

{"text": "…", "harm": true}
{"text": "…", "harm": false, "group": "religion", "id": "prayer"}
{"text": "…", "harm": false, "paraphrase_of": "prayer"}
"""

import hashlib
import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from evenhand.core.errors import UserError
from evenhand.runs.runners.source import read_jsonl

_FORM = (
    'a line is {"text": "…", "harm": true} or with false, and may have "group", "id" and '
    '"paraphrase_of"'
)
_MOST_BYTES = 20_000_000  # our choice: far more than anybody labels by hand
_LEAKS_FROM = 20  # our choice: signs from which on a text in the policy is no coincidence
_NUMBER = re.compile(
    r"\w*\d\w*|zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|"
    r"fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|"
    r"eighty|ninety|hundred|thousand"
)


def _one_line(words: str) -> str:
    if not words.isprintable() or not words.strip():
        raise ValueError("a few words in one line, without control characters")
    return words


_Name = Annotated[str, Field(max_length=80), AfterValidator(_one_line)]


class _ExampleRow(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    text: Annotated[str, Field(pattern=r"\S", max_length=20_000)]
    harm: bool
    group: _Name | None = None
    id: _Name | None = None
    paraphrase_of: _Name | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A text of which people have said whether it does the harm."""

    line: int
    text: str
    harm: bool
    group: str  # whom it speaks of; "" where nobody is named
    id: str  # its own, or its line
    of: str = ""  # the id of the example that it says in other words

    @property
    def digest(self) -> str:
        """A short checksum of the words, by which two checks know that they share a text."""
        return hashlib.sha256(near_copy_key(self.text).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Examples:
    """All examples of a file. Those that say another in other words stand apart: they are no
    further evidence on how often the judge is right."""

    sha256: str
    all: tuple[Example, ...]

    @property
    def own(self) -> tuple[Example, ...]:
        return tuple(example for example in self.all if not example.of)

    @property
    def paraphrases(self) -> tuple[Example, ...]:
        return tuple(example for example in self.all if example.of)

    def count(self, *, harm: bool) -> int:
        """How many examples there are, near copies as one."""
        return len({near_copy_key(example.text) for example in self.own if example.harm is harm})

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of benign examples, whose false alarms are counted apart."""
        return tuple(
            sorted({example.group for example in self.own if example.group and not example.harm})
        )


def read_examples(path: Path) -> Examples:
    """Read a file of examples; a bad line is refused by its number."""
    if path.is_file() and path.stat().st_size > _MOST_BYTES:
        raise UserError(f"{path} has more than {_MOST_BYTES // 1_000_000} MB; give fewer texts")
    examples = [_example(line, row) for line, row in read_jsonl(path, _ExampleRow, _FORM)]
    _refuse_twins(path, examples)
    _refuse_lost(path, examples)
    return Examples(hashlib.sha256(path.read_bytes()).hexdigest(), tuple(examples))


def _example(line: int, row: _ExampleRow) -> Example:
    return Example(
        line=line,
        text=row.text,
        harm=row.harm,
        group=row.group or "",
        id=row.id or f"line {line}",
        of=row.paraphrase_of or "",
    )


def _refuse_twins(path: Path, examples: Sequence[Example]) -> None:
    """A text that stands twice would count twice, or be labelled both ways."""
    texts, ids = dict[str, int](), dict[str, int]()
    for example in examples:
        for lines, key, what in ((texts, _plain(example.text), "text"), (ids, example.id, "id")):
            if key in lines:
                raise UserError(
                    f"{path} line {example.line}: the same {what} as in line {lines[key]}; keep one"
                )
            lines[key] = example.line


def _refuse_lost(path: Path, examples: Sequence[Example]) -> None:
    """A paraphrase belongs to an example of the file with the same label."""
    by_id = {example.id: example for example in examples if not example.of}
    for example in examples:
        if example.of and example.of not in by_id:
            raise UserError(
                f"{path} line {example.line}: paraphrase_of: no example has the id {example.of!r}; "
                'give the line that it says in other words that "id"'
            )
        if example.of and by_id[example.of].harm is not example.harm:
            raise UserError(
                f"{path} line {example.line}: it is said to be {_label(example.harm)}, and line "
                f"{by_id[example.of].line}, which it says in other words, "
                f"{_label(by_id[example.of].harm)}; label both alike"
            )


def _label(harm: bool) -> str:
    return f"harm = {str(harm).lower()}"


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


@lru_cache(maxsize=2_048)
def near_copy_key(text: str) -> str:
    """The words of a text without case, accents of form, punctuation, spaces and numbers. Texts
    that share it are near copies: they count as one example, and as one seen before.

    Every number, in digits or in English words up to a thousand, is one and the same. A text
    without any word is its own key.
    """
    plain = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(sign if sign.isalnum() else " " for sign in plain)
    numbered = " ".join("#" if _NUMBER.fullmatch(word) else word for word in words.split())
    return re.sub(r"#( #)+", "#", numbered) or _plain(text)


def refuse_leaked(examples: Examples, policy: str, where: str) -> None:
    """Refuse examples that the policy quotes: what the judge is shown does not test it."""
    words = _plain(policy)
    for example in examples.all:
        if len(_plain(example.text)) >= _LEAKS_FROM and _plain(example.text) in words:
            raise UserError(
                f"{where}: the policy has the text of line {example.line} in it, so that this "
                "example tests nothing; say it in other words in one of the two"
            )


def fewest(share: float, confidence: float = 0.95) -> int:
    """How many examples it takes to show that at least this share is judged rightly, if all are.

    shareⁿ ≤ (1 − confidence)/2, the lower end of the exact interval of n of n (Clopper & Pearson
    1934). Range: 1 upwards. Always defined for a share between 0 and 1.
    """
    return math.ceil(math.log((1 - confidence) / 2) / math.log(share))
