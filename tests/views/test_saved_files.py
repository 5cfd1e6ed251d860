"""Where a finding is written to, whatever lies there already."""

import json
from pathlib import Path
from typing import Any

import pytest

from evenhand.views import save


class Small:
    def __init__(self, said: Any) -> None:
        self.said = said

    def to_dict(self) -> dict[str, Any]:
        return {"said": self.said}


def test_a_link_is_replaced_and_what_it_points_to_stays(tmp_path: Path) -> None:
    kept, link = tmp_path / "kept.txt", tmp_path / "link.json"
    kept.write_text("mine")
    link.symlink_to(kept)
    save(Small(1), str(link))
    assert kept.read_text() == "mine"
    assert not link.is_symlink()
    assert json.loads(link.read_text()) == {"said": 1}


def test_a_file_is_replaced_whole_under_its_rights_and_nothing_is_left_beside_it(
    tmp_path: Path,
) -> None:
    place = tmp_path / "found.json"
    place.write_text("before")
    place.chmod(0o640)
    held = place.open()  # a reader of the file that was there
    save(Small(1), str(place))
    with held:
        assert held.read() == "before"
    assert place.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in tmp_path.iterdir()] == ["found.json"]
    with pytest.raises(IsADirectoryError):
        (tmp_path / "folder.json").mkdir()
        save(Small(1), str(tmp_path / "folder.json"))
    assert len(list(tmp_path.iterdir())) == 2
