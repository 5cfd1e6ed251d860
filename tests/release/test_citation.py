"""How to cite the package is said in the form that hosts and reference managers read."""

import tomllib
from pathlib import Path

import yaml

import evenhand

ROOT = Path(__file__).parents[2]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_it_says_of_the_package_what_the_package_says_of_itself() -> None:
    assert CITATION["version"] == PROJECT["version"] == evenhand.__version__
    assert CITATION["title"] == PROJECT["name"]
    assert CITATION["abstract"] == PROJECT["description"]
    assert CITATION["license"] == PROJECT["license"]
    assert CITATION["authors"] == PROJECT["authors"]


def test_it_has_what_the_format_asks_for() -> None:
    assert CITATION["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= CITATION.keys()
    assert CITATION["type"] == "software"
    assert all(isinstance(CITATION[key], str) for key in CITATION.keys() - {"authors", "keywords"})
    unreleased = f"## {CITATION['version']} (unreleased)" in (ROOT / "CHANGELOG.md").read_text()
    assert unreleased != ("date-released" in CITATION)
