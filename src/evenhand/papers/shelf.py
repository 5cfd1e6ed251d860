"""The papers that are in the package, read from their files."""

import tomllib
from functools import cache
from importlib import resources

from evenhand.errors import UserError
from evenhand.papers.recipe import Paper

PAPERS = ("stardtox", "mabrf", "rldf", "malibu")
_WHOLE = "paper.toml"


@cache
def paper_named(name: str) -> Paper:
    """The paper of this name with all its tables."""
    if name not in PAPERS:
        raise UserError(f"there is no paper {name!r}; there are: {', '.join(PAPERS)}")
    folder = resources.files("evenhand.papers") / name
    files = sorted(
        (one for one in folder.iterdir() if one.name.endswith(".toml") and one.name != _WHOLE),
        key=lambda one: one.name,
    )
    tables = [
        {**tomllib.loads(one.read_text("utf-8")), "name": one.name.removesuffix(".toml")}
        for one in files
    ]
    whole = tomllib.loads((folder / _WHOLE).read_text("utf-8"))
    return Paper.model_validate({**whole, "name": name, "tables": tables})
