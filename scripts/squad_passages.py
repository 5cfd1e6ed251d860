"""Write the 1,204 passages of SQuAD v2's development set as a corpus to search, one per line.

    python scripts/squad_passages.py squad-passages.jsonl

With this in evenhand.toml, MABRF's Table 4 needs no web search:

    [search]
    engine = "corpus"
    path = "squad-passages.jsonl"

    evenhand dev reproduce mabrf table4 --out runs/papers

Without the data set at hand, it is downloaded as by `evenhand measure squad`.
"""

import sys
from pathlib import Path

import orjson

from evenhand.experiments.config import data_folder
from evenhand.instruments.squad.source import SquadData


def write(out: Path) -> int:
    """Write each passage once, with its article as title, and give how many there are."""
    data = data_folder()
    records = SquadData(local=data.local, cache=data.cache).records()
    passages = records.select("article", "passage").unique(maintain_order=True)
    with out.open("xb") as file:
        for article, passage in passages.iter_rows():
            file.write(orjson.dumps({"title": article.replace("_", " "), "text": passage}) + b"\n")
    return len(passages)


if __name__ == "__main__":
    sys.stdout.write(f"{write(Path(sys.argv[1])):,} passages\n")
