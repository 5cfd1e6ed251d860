"""The script that writes SQuAD's passages as a corpus, on the shipped form of the data."""

from pathlib import Path

import polars as pl
import pytest

from evenhand.agents.tools.search.corpus import Corpus
from evenhand.instruments.squad.source import SquadData
from tests.scripts import script


async def test_each_passage_is_written_once_and_found_by_its_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    records = pl.DataFrame(
        {
            "article": ["Steam_engine", "Steam_engine", "Oxygen"],
            "passage": ["A boiler heats water.", "A boiler heats water.", "It is a gas."],
        }
    )
    monkeypatch.setattr(SquadData, "records", lambda _: records)
    out = tmp_path / "passages.jsonl"
    assert script("squad_passages").write(out) == 2
    hits = await Corpus(out).search("Which boiler heats?", 5, 1e9)
    assert [(hit.title, hit.text) for hit in hits] == [("Steam engine", "A boiler heats water.")]
    with pytest.raises(FileExistsError):
        script("squad_passages").write(out)
