"""What those need who report, take over or begin: forms, owners, labels and first issues."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FORMS = [
    path for path in sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
    if path.name != "config.yml"
]  # fmt: skip
FIRST_ISSUES = sorted((ROOT / ".github/good-first-issues").glob("*.md"))
PARTS = ["Where", "Why", "What to do", "How to test", "Done when"]


def _loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def _labels() -> set[str]:
    return {label["name"] for label in _loaded(ROOT / ".github/labels.yml")}


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_asks_for_something_and_has_labels_that_exist(path: Path) -> None:
    form = _loaded(path)
    assert {"name", "description", "labels", "body"} <= form.keys()
    assert set(form["labels"]) <= _labels()
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    names = [field["id"] for field in fields]
    assert len(set(names)) == len(names)
    assert all(field["attributes"]["label"] for field in fields)
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_every_package_has_an_owner_and_every_owned_place_exists() -> None:
    lines = (ROOT / ".github/CODEOWNERS").read_text().splitlines()
    owned = dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))
    packages = [path.name for path in (ROOT / "src/evenhand").iterdir() if path.is_dir()]
    rooms = {f"/src/evenhand/{name}/" for name in packages if not name.startswith("__")}
    assert rooms <= owned.keys()
    for place, owners in owned.items():
        assert place == "*" or (ROOT / place.strip("/")).is_dir(), place
        assert all(owner.startswith("@evenhand/") for owner in owners.split())


def test_there_are_ten_first_issues_with_all_parts() -> None:
    assert len(FIRST_ISSUES) == 10
    for path in FIRST_ISSUES:
        text = path.read_text("utf-8")
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == PARTS, path.name
        assert 120 < len(text.split()) < 400, path.name


@pytest.mark.parametrize("path", FIRST_ISSUES, ids=lambda path: path.stem)
def test_a_first_issue_names_files_that_exist(path: Path) -> None:
    """Whoever solves one deletes its file, and writes another."""
    named = re.findall(r"`((?:src|tests|docs|scripts)/[\w./-]+\.(?:py|md|toml|yaml))`",
                       path.read_text("utf-8"))  # fmt: skip
    assert named
    for file in named:
        assert (ROOT / file).is_file(), file
