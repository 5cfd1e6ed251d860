"""The catalogue has the words of every remark: one sentence for each code, in one place.

A sentence is a template for `str.format`, or a function of the values where words depend on them.
A value that is a remark is turned into words first.
"""

from collections.abc import Callable, Mapping
from typing import Any

from evenhand.findings.display import Remark, RemarkOrText
from evenhand.views.catalog import comparisons, packs, reports, runs

__all__ = ["SENTENCES", "text", "texts"]

SENTENCES: Mapping[str, str | Callable[..., str]] = {
    **comparisons.SENTENCES,
    **packs.SENTENCES,
    **reports.SENTENCES,
    **runs.SENTENCES,
}


def text(remark: RemarkOrText) -> str:
    """Return the words of a remark. A text is returned as it is."""
    if isinstance(remark, str):
        return remark
    sentence = SENTENCES[remark.code]
    values = {name: _in_words(value) for name, value in remark.values.items()}
    return sentence.format(**values) if isinstance(sentence, str) else sentence(**values)


def texts(remarks: tuple[RemarkOrText, ...] | list[RemarkOrText]) -> list[str]:
    """Return the words of several remarks."""
    return [text(remark) for remark in remarks]


def _in_words(value: Any) -> Any:
    if isinstance(value, Remark):
        return text(value)
    if isinstance(value, tuple | list):
        return [_in_words(item) for item in value]
    return value
