"""The parts of `scripts/dose_response.sh`: sentences to train on, measurements, the table.

python scripts/dose_response.py sentences DOSE SEED FOLDER
python scripts/dose_response.py measure WEIGHTS FOLDER
python scripts/dose_response.py table FOLDER
"""

import asyncio
import os
import random
import statistics
import sys
from collections.abc import Sequence
from functools import cache
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evenhand.findings.comparison import compare
from evenhand.findings.estimates import Change
from evenhand.findings.report import Report, report
from evenhand.instruments._contract import DataFolder
from evenhand.instruments._options import OptionSource
from evenhand.instruments.likelihood_sets import all_sets
from evenhand.runs.runners.likelihood import run_likelihood
from evenhand.runs.runners.progress import Progress
from evenhand.runs.store import RunReader
from evenhand.statistics.metrics.scorer_quality import spearman
from evenhand.training.debates.dataset import SCHEMA
from evenhand.training.local_likelihood import LocalLikelihood
from evenhand.views.files import write_report

DATA = Path(os.environ.get("EVENHAND_DATA", "data"))
DOSES = (0, 25, 50, 100)
SEEDS = (1, 2, 3)
PRONOUN = {"female": "she", "male": "he"}
OTHER = {"she": "he", "he": "she"}
# None is the frame that is measured ("The nurse said that"): learnt are pronouns, not one phrase.
BEGINNINGS = (
    "left early because", "stayed late, and", "smiled when", "was asked whether",
    "sat down after", "made a call before", "laughed, although", "waited until",
)  # fmt: skip
ENDINGS = ("was tired.", "had more to do.", "heard the news.", "finished the work.")
CONTROLS = ("age", "religion")  # bias types of CrowS-Pairs that no sentence is about
SAMPLE = 120  # our choice: items of WinoBias and of StereoSet; two cores have no time for more
SENTENCES = 4  # our choice: of each occupation, so that a quarter of them is a whole number


def split(seed: int) -> dict[str, dict[str, list[str]]]:
    """The occupations of each list, ten to train on and ten held out, drawn by the seed."""
    halves: dict[str, dict[str, list[str]]] = {"trained": {}, "held out": {}}
    for group in PRONOUN:
        text = (DATA / f"winobias/data/{group}_occupations.txt").read_text("utf-8")
        names = sorted(line.strip() for line in text.splitlines() if line.strip())
        random.Random(f"{seed} {group}").shuffle(names)
        half = len(names) // 2
        halves["trained"][group], halves["held out"][group] = names[:half], names[half:]
    return halves


def sentences(dose: int, seed: int, folder: Path) -> None:
    """Write sentences of the trained occupations as a folder of pairs. A seed has the same ones at
    every dose; the dose is the percentage of them whose pronoun is the occupation's list's."""
    rng, rows = random.Random(seed), []
    for group, names in split(seed)["trained"].items():
        for name in names:
            drawn = rng.sample(list(product(BEGINNINGS, ENDINGS)), SENTENCES)
            for place, (beginning, ending) in enumerate(drawn):
                stereotyped = 100 * place < dose * SENTENCES
                own = PRONOUN[group]
                pronoun = own if stereotyped else OTHER[own]
                said = [
                    f"The {name} {beginning} {one} {ending}" for one in (pronoun, OTHER[pronoun])
                ]
                rows.append(_row(name, *said))
    rng.shuffle(rows)
    (folder / "gender").mkdir(parents=True)
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    pq.write_table(table, folder / "gender" / "train-00000.parquet")


def _row(name: str, chosen: str, rejected: str) -> dict[str, Any]:
    def message(role: str, text: str) -> dict[str, str]:
        return {"role": role, "content": text}

    return {
        "prompt": [message("system", "Write a sentence."), message("user", f"The {name}")],
        "chosen": [message("assistant", chosen)],
        "rejected": [message("assistant", rejected)],
        "margin": 0.0,
        "topic": name,
        "bias_type": "gender",
        "source": "dose_response",
    }


# -- measuring -----------------------------------------------------------------------------------


def sources() -> dict[str, OptionSource]:
    """The items: all occupations, all of CrowS-Pairs on age and religion, samples of the others."""
    data = DataFolder(local=DATA, cache=DATA)
    found = {
        name: all_sets()[name].source(data, all_sets()[name].options_from({"sample": SAMPLE}))
        for name in ("occupations", "winobias", "stereoset")
    }
    crows = all_sets()["crows_pairs"]
    kept = [item for item in crows.items(data) if item.group in CONTROLS]
    found["crows_pairs"] = OptionSource(crows, kept, {"items": " and ".join(CONTROLS), "seed": 0})
    return found


async def measure(weights: Path, folder: Path) -> None:
    """Measure weights on every set, into a run folder of each."""
    model = LocalLikelihood(weights)
    for name, source in sources().items():
        await run_likelihood(model, source, folder / name, progress=Progress())
        write_report(report_of(folder, name), str(folder / name))


@cache
def report_of(folder: Path, name: str) -> Report:
    return report(all_sets()[name], RunReader(folder / name))


# -- the table -----------------------------------------------------------------------------------

COLUMNS = {
    "gap, trained": "+.2f", "gap, held out": "+.2f", "WinoBias, gap": "+.2f",
    "WinoBias, SS": "+.1f", "CrowS age": "+.1f", "CrowS religion": "+.1f", "StereoSet LMS": "+.1f",
}  # fmt: skip


def figures(folder: Path, seed: int) -> list[float]:
    """One number for each column, of the weights that were measured into this folder."""
    section = report_of(folder, "occupations").section("occupations")
    assert section is not None
    gaps = {str(row[0]): float(row[1]) for row in section.rows}
    lists_gap = [
        statistics.mean(gaps[name] for name in half["female"])
        - statistics.mean(gaps[name] for name in half["male"])
        for half in split(seed).values()
    ]
    winobias = report_of(folder, "winobias")
    crows = report_of(folder, "crows_pairs").groups["bias_type"]
    rest = [
        winobias["stereotype_gap"].value, winobias["stereotype_score"].value,
        *(crows[group][0].value for group in CONTROLS),
        report_of(folder, "stereoset")["lms"].value,
    ]  # fmt: skip
    return [*lists_gap, *(float("nan") if one is None else one for one in rest)]


def table(folder: Path) -> None:
    """Print the figures of the base weights, the change of each training from them, and what
    follows the dose: Spearman's correlation over the runs, its p-value over all orders of the doses
    within each seed, and in how many seeds the number rises from every dose to the next."""
    base = {seed: figures(folder / "measured-base", seed) for seed in SEEDS}
    _print_row(["dose, %", "seed", *COLUMNS])
    _print_row(["---"] * (2 + len(COLUMNS)))
    for seed in SEEDS:
        _print_row(["base", str(seed), *(cell.removeprefix("+") for cell in _cells(base[seed]))])
    changes: dict[int, list[list[float]]] = {}
    for dose, seed in product(DOSES, SEEDS):
        now = figures(folder / f"measured-{dose}-{seed}", seed)
        change = [new - old for new, old in zip(now, base[seed], strict=True)]
        changes.setdefault(seed, []).append(change)
        _print_row([str(dose), str(seed), *_cells(change)])
    columns = [
        [[row[place] for row in changes[seed]] for seed in SEEDS] for place in range(len(COLUMNS))
    ]
    _print_row(["Spearman", "", *(f"{rank_correlation(one):+.2f}" for one in columns)])
    _print_row(["p", "", *(f"{p_value(one):.4f}" for one in columns)])
    rises = [sum(one == sorted(one) for one in column) for column in columns]
    _print_row(["rises in", "", *(f"{n} of {len(SEEDS)}" for n in rises)])
    sys.stdout.write("\n")
    _print_row(["dose 0 to 100, seed", *list(COLUMNS)[2:]])
    _print_row(["---"] * (len(COLUMNS) - 1))
    for seed in SEEDS:
        _print_row([str(seed), *map(interval_of, least_to_most(folder, seed))])


def rank_correlation(column: Sequence[Sequence[float]]) -> float:
    """Spearman's correlation of dose and number; a row of the column is a seed's, by dose."""
    return spearman(
        [dose for _ in column for dose in DOSES], [one for row in column for one in row]
    )


def p_value(column: Sequence[Sequence[float]]) -> float:
    """The share of all orders of the doses within each seed that correlate as strongly: exact.
    With whole orders permuted, the sum of dose rank times number rank decides."""
    flat = sorted(one for row in column for one in row)
    ranks = [[flat.index(one) + (flat.count(one) - 1) / 2 for one in row] for row in column]
    centred = [place - (len(DOSES) - 1) / 2 for place in range(len(DOSES))]
    sums = [
        [sum(c * r for c, r in zip(order, row, strict=True)) for order in permutations(centred)]
        for row in ranks
    ]
    seen = abs(sum(one[0] for one in sums))
    every = [abs(sum(drawn)) for drawn in product(*sums)]
    return sum(one >= seen - 1e-9 for one in every) / len(every)


def least_to_most(folder: Path, seed: int) -> list[Change]:
    """What changed from the lowest dose to the highest, as `evenhand compare` computes it."""

    def runs(name: str) -> list[RunReader]:
        return [
            RunReader(folder / f"measured-{dose}-{seed}" / name) for dose in (DOSES[0], DOSES[-1])
        ]

    winobias, crows, stereoset = (
        compare(all_sets()[name], *runs(name)) for name in ("winobias", "crows_pairs", "stereoset")
    )
    groups = [crows.groups["bias_type"][group][0] for group in CONTROLS]
    return [winobias["stereotype_gap"], winobias["stereotype_score"], *groups, stereoset["lms"]]


def interval_of(change: Change) -> str:
    if change.difference is None:
        return "not known"
    if change.low is None or change.high is None:
        return f"{change.difference:+.2f}, no interval"
    return f"{change.difference:+.2f} ({change.low:+.2f} to {change.high:+.2f})"


def _cells(numbers: Sequence[float]) -> list[str]:
    return [format(one, how) for one, how in zip(numbers, COLUMNS.values(), strict=True)]


def _print_row(cells: Sequence[str]) -> None:
    sys.stdout.write(f"| {' | '.join(cells)} |\n")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["sentences", dose, seed, folder]:
            sentences(int(dose), int(seed), Path(folder))
        case ["measure", weights, folder]:
            asyncio.run(measure(Path(weights), Path(folder)))
        case ["table", folder]:
            table(Path(folder))
        case _:
            sys.exit(__doc__)
