"""Writes a package for a new instrument, method or scorer.

Each folder of `evenhand/templates` is a complete package whose part is called `new_instrument`,
`new_method` or `new_scorer`. Writing one copies it under another name.
"""

import re
from importlib import resources, util
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

from evenhand.core import registry
from evenhand.core.errors import UserError

Kind = Literal["instrument", "method", "scorer"]
_GROUPS: dict[Kind, registry.Group] = {
    "instrument": "instruments",
    "method": "methods",
    "scorer": "scorers",
}
# Words of the command line and of the config that cannot be names of parts.
KEPT = {
    "instrument": ("likelihood",),
    "method": ("usual",),
    "scorer": ("offline", "wordlist", "regard"),
}
LONGEST = 40  # our choice: a name stands in commands, tables and lines of code


def write(kind: Kind, name: str, into: Path) -> Path:
    """Write the package of a part with this name into a folder, and give the package's own
    folder."""
    _check(kind, name)
    package = f"evenhand_{name}"
    if util.find_spec(package) is not None:
        raise UserError(f"a package {package} is installed already: take another name")
    folder = into / package
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise UserError(
            f"{folder} is there already: take another name, or another folder with --into"
        ) from None
    except NotADirectoryError:
        raise UserError(f"{into} is no folder: name one with --into") from None
    _copy(resources.files("evenhand.templates") / kind, folder, _words(kind, name))
    return folder


def _check(kind: Kind, name: str) -> None:
    """Refuse a name that is no name of a module, or that is taken."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or len(name) > LONGEST:
        raise UserError(
            f"{name!r} is no name of a part: at most {LONGEST} small letters, digits and single "
            "underscores, with a letter first, such as job_titles"
        )
    if name in KEPT[kind] or name in registry.names(_GROUPS[kind]):
        raise UserError(f"the {kind} {name!r} is there already: take another name")


def _words(kind: Kind, name: str) -> dict[str, str]:
    """What stands in the files, and what takes its place: a name as a word of code, of a class, of
    a package index and of a title."""
    words = name.split("_")
    return {
        f"new_{kind}": name,
        f"New{kind.capitalize()}": "".join(map(str.capitalize, (*words, kind))),
        f"new-{kind}": "-".join(words),
        f"New {kind}": " ".join(words).capitalize(),
    }


def _copy(template: Traversable, folder: Path, words: dict[str, str]) -> None:
    for source in template.iterdir():
        if source.name.startswith((".", "__pycache__")):  # left there by tools
            continue
        target = folder / _renamed(source.name, words)
        if source.is_dir():
            target.mkdir()
            _copy(source, target, words)
        else:
            target.write_text(_renamed(source.read_text("utf-8"), words), "utf-8")


def _renamed(text: str, words: dict[str, str]) -> str:
    for old, new in words.items():
        text = text.replace(old, new)
    return text
