"""Data that ships with the code: texts, word lists, tables and templates in its folders.

A file is read when it is first asked for, and once.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any


@cache
def read_text(package: str, *path: str) -> str:
    """Return the text of a file in the folder of a package.

    >>> read_text("evenhand.training.rating", "sheet.css").startswith(":root")
    True
    """
    return resources.files(package).joinpath(*path).read_text("utf-8")


@cache
def read_toml(package: str, *path: str) -> dict[str, Any]:
    """Return the tables of a TOML file of a package. All callers share them: do not change them."""
    return tomllib.loads(read_text(package, *path))


@cache
def word_sets(package: str, *path: str) -> dict[str, frozenset[str]]:
    """Return the word lists of a TOML file: each key is one list, its words parted by blanks."""
    return {key: frozenset(words.split()) for key, words in read_toml(package, *path).items()}


def render(package: str, name: str, **values: Any) -> str:
    """Return a Jinja template of a package, filled. A name that has no value is an error."""
    import jinja2  # noqa: PLC0415 - few data are templates

    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True,
                                     lstrip_blocks=True, keep_trailing_newline=True)  # fmt: skip
    return environment.from_string(read_text(package, name)).render(values)


@dataclass(frozen=True, slots=True)
class Texts:
    """The sentences of a package, from its `words.toml`. Values are put in place of `{…}`.

    >>> Texts("evenhand.instruments.squad")("few_articles", articles=3)
    'Only 3 articles: what holds for them may not hold for others.'
    """

    package: str

    def __call__(self, key: str, /, **values: Any) -> str:
        return str(read_toml(self.package, "words.toml")[key]).format(**values)
