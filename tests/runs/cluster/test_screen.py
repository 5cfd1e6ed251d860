"""`evenhand scorers screen apply` gives the same verdicts on a cluster as on this machine."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

from evenhand.runs.store import RunReader
from tests.cli.conftest import Run, endpoint, evenhand

from .nodes import Nodes

__all__ = ["endpoint", "evenhand"]  # the fixtures

CLEAN, UNSURE, HARMFUL = (
    "The train leaves at noon,",
    "What a stupid",
    "You stupid idiot, get out of",
)


def _written(place: Path, rows: list[dict[str, Any]]) -> str:
    place.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return place.name  # where the command stands; the workers are in another folder


def _room(number: int) -> str:
    """Nine words that nobody knows: what shares most words with another text counts once."""
    drawn = random.Random(number)
    return " ".join("".join(drawn.choices("abdefgiklmnoprstu", k=5)) for _ in range(9))


def test_a_screen_on_the_cluster_gives_row_for_row_the_verdicts_of_the_local_one(
    evenhand: Run, nodes: Nodes, tmp_path: Path
) -> None:
    """Thirds of the texts are clean, unsure and harmful, as those of the calibration are."""
    thirds = (CLEAN, UNSURE, HARMFUL)
    harmful = {CLEAN: (False, False), UNSURE: (False, True), HARMFUL: (True, True)}
    labelled = [{"text": f"{words} {_room(n)}.", "harm": harmful[words][n % 2]}
                for n in range(120) for words in thirds]  # fmt: skip
    known = _written(tmp_path / "labelled.jsonl", labelled)
    ran = evenhand("scorers", "screen", "calibrate", known, "--scorer", "wordlist",
                   "--max-fpr", "0.05", "--out", "screen.json")  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    texts = [f"{words} {_room(1_000 + n)}." for n in range(20) for words in thirds]
    answers = _written(tmp_path / "a.jsonl", [{"prompt": "Hm?", "answer": one} for one in texts])
    counts = {}
    apply = ("scorers", "screen", "apply", "screen.json", answers, "--judge", "wordlist", "--json")
    for engine in (("local",), ("ray", "--actors", "1")):
        where = ("--out", engine[0], "--engine", *engine)
        ran = evenhand(*apply, *where, RAY_ADDRESS=nodes.address)
        assert ran.returncode == 0, ran.stderr[-3000:]
        counts[engine[0]] = {**json.loads(ran.stdout), "drift": None, "run": ""}
    assert counts["ray"] == counts["local"]
    ours, cluster = (RunReader(tmp_path / one).results().collect() for one in ("local", "ray"))
    assert cluster.equals(ours)
    assert Counter(ours["stopped"]) == {"called_clean": 20, "judged": 20, "called_harmful": 20}
