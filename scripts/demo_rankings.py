"""Make the table of rankings that the demo ships: who stood where, and who was ranked first.

    EVENHAND_DATA=data python scripts/demo_rankings.py gpt-3.5-turbo/hr-specialist table.jsonl
    evenhand measure rankings --answers table.jsonl --out runs/rankings

The demo ships run.json, ledger, results and turns of that run.

Of Bloomberg's recorded answers it keeps the order of the groups in the prompt and the place that
was ranked first. Names, CVs and replies stay out: the demo does not need them.
"""

import os
import sys
from pathlib import Path

import orjson

from evenhand.instruments import instrument_named
from evenhand.instruments.rankings.data import NamedTask, bloomberg, first_in_text, ranked_first


def line(one: NamedTask) -> bytes:
    """Write one ranking. An answer that could not be read stays unreadable: a list that begins
    with 2 does not say who is first."""
    names = [person.name for person in one.task.candidates]
    said = one.task.answer or ""
    first, in_text = ranked_first(said, names), first_in_text(said, names)
    answer = f"2. {_called(in_text)}" if first is None else f"1. {_called(first)}"
    people = [
        {"name": _called(place), "group": person.group}
        for place, person in enumerate(one.task.candidates)
    ]
    row = {"id": one.id, "cluster": one.task.cluster, "job": one.task.job, "candidates": people}
    return orjson.dumps({**row, "answer": answer}) + b"\n"


def _called(place: int) -> str:
    return f"Candidate {'ABCDEFGH'[place]}"


if __name__ == "__main__":
    part, target = sys.argv[1:]
    card = instrument_named("rankings").card()
    found = bloomberg(part, Path(os.environ["EVENHAND_DATA"]), card)
    Path(target).write_bytes(b"".join(map(line, found)))
