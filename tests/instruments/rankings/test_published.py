"""Bloomberg's recorded answers give its published table, and the places that it does not show."""

import csv
import gzip
import io
from pathlib import Path

import pytest

from evenhand.instruments.files import card_of
from evenhand.instruments.rankings.data import (
    JOBS,
    MODELS,
    bloomberg_parts,
    first_in_text,
    ranked_first,
)
from evenhand.instruments.rankings.judged import PLACE, Ranking, counted
from evenhand.instruments.rankings.tables import place_p

Parts = dict[str, list[Ranking]]
# Of 1,000 rankings each, how often the candidate in each place of the prompt came first.
PLACES = {
    "gpt-3.5-turbo/software-engineer": [834, 51, 17, 15, 19, 26, 24, 14],
    "gpt-3.5-turbo/retail": [549, 143, 56, 39, 59, 48, 48, 58],
    "gpt-3.5-turbo/hr-specialist": [451, 150, 99, 61, 45, 73, 56, 65],
    "gpt-3.5-turbo/financial-analyst": [409, 143, 75, 66, 77, 77, 76, 77],
    "gpt-4/financial-analyst": [423, 234, 147, 82, 51, 29, 17, 17],
    "gpt-4/software-engineer": [401, 194, 145, 94, 68, 37, 22, 39],
    "gpt-4/hr-specialist": [172, 215, 167, 178, 119, 83, 36, 30],
    "gpt-4/retail": [137, 159, 227, 187, 148, 70, 40, 32],
}


@pytest.fixture(scope="module")
def folder(data_folder: Path) -> Path:
    if not (data_folder / "bloomberg_hiring").is_dir():
        pytest.skip(f"no recorded rankings at {data_folder}; name their folder in EVENHAND_DATA")
    return data_folder


@pytest.fixture(scope="module")
def parts(folder: Path) -> Parts:
    found: Parts = {}
    for part, named in bloomberg_parts(folder, card_of("evenhand.instruments.rankings")).items():
        found[part] = [
            Ranking(one.id, tuple(c.group for c in one.task.candidates),
                    ranked_first(answer, names), first_in_text(answer, names))
            for one in named
            for names in [[c.name for c in one.task.candidates]]
            for answer in [one.task.answer or ""]
        ]  # fmt: skip
    return found


def test_all_64_published_counts_come_from_the_recorded_answers(parts: Parts, folder: Path) -> None:
    races = {"A": "Asian", "B": "Black", "H": "Hispanic", "W": "White"}
    jobs = {long: short for short, long in JOBS.items()}
    file = folder / "bloomberg_hiring/data/output/performance_ranking.csv.gz"
    published: dict[object, tuple[int, int]] = {}
    ours: dict[object, tuple[int, int]] = {}
    for row in csv.DictReader(io.StringIO(gzip.decompress(file.read_bytes()).decode())):
        group = races[row["demo"][0]], {"M": "men", "W": "women"}[row["demo"][-1]]
        published[f"{row['model']}/{jobs[row['job']]}", group] = (
            int(row["top"]), int(row["top_og"]))  # fmt: skip
    for part, found in parts.items():
        counts = counted(found, ("race", "sex"))
        ours |= {(part, group): (n, counts.leading[group]) for group, n in counts.in_text.items()}
    assert len(published) == 64
    assert ours == published


def test_which_place_was_ranked_first_by_the_published_rule(parts: Parts) -> None:
    for part, places in PLACES.items():
        counts = counted(parts[part], PLACE)
        assert [counts.in_text[str(place),] for place in range(1, 9)] == places


def test_the_place_is_found_to_matter_in_all_eight_parts(parts: Parts) -> None:
    assert set(parts) == {f"{model}/{job}" for model in MODELS for job in JOBS}
    assert all((place_p(counted(found, PLACE)) or 0) < 0.001 for found in parts.values())


def test_35_of_8000_first_names_are_misspelt_and_12_the_published_rule_misses(
    parts: Parts,
) -> None:
    """Such as O'Connell for OCONNELL and Jesús for JESUS; 12 of them are in the list of names."""
    every = [one for found in parts.values() for one in found]
    assert len(every) == 8000
    assert sum(one.first is None for one in every) == 35
    assert sum(one.first not in (None, one.in_text) for one in every) == 12
