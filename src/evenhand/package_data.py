"""Data that ships with the code: texts, word lists, tables and templates in files beside it.

A file is read when it is first asked for, and once.
"""

import tomllib
from functools import cache
from importlib import resources
from typing import Any


@cache
def read_text(package: str, *path: str) -> str:
    """Return the text of a file that lies beside the modules of a package.

    >>> read_text("evenhand.rating", "sheet.css").startswith(":root")
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
