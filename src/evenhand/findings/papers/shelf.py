"""The papers that are in the package, read from their files."""

import tomllib
from functools import cache
from importlib import resources

from evenhand.core.errors import UserError
from evenhand.findings.papers.recipe import Paper

PAPERS = ("stardtox", "mabrf", "rldf", "malibu")
_WHOLE = "paper.toml"


@cache
def paper_named(name: str) -> Paper:
    """The paper of this name with all its tables."""
    if name not in PAPERS:
        raise UserError(f"there is no paper {name!r}; there are: {', '.join(PAPERS)}")
    folder = resources.files("evenhand.findings.papers") / name
    paper = tomllib.loads((folder / _WHOLE).read_text("utf-8"))
    files = {file.name.removesuffix(".toml"): file for file in folder.iterdir()
             if file.name.endswith(".toml") and file.name != _WHOLE}  # fmt: skip
    order = {table: index for index, table in enumerate(paper["order"])}
    tables = [
        {**tomllib.loads(files[table].read_text("utf-8")), "name": table}
        for table in sorted(files, key=lambda stem: order.get(stem, len(order)))
    ]
    return Paper.model_validate({**paper, "name": name, "tables": tables})
