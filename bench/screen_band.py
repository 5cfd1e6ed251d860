"""Where the gateway's default band lies, by texts that the staged scorer was not trained on.

    EVENHAND_DATA=… python -m bench.screen_band            # or `make bench-screen-band`
    EVENHAND_DATA=… python -m bench.screen_band --out recorded/screen_band.json

| texts                                                     | used for                          |
| --------------------------------------------------------- | --------------------------------- |
| SQuAD 2.0 dev, paragraphs, by article                     | half the band, half the figures   |
| HateCheck, hateful cases inside answers, by template      | half the band, half the figures   |
| Surge AI, toxic, the fifth not trained on, inside answers | figures                           |
| PandaLM, answers of models of 200 characters or more      | figures                           |
| Multilingual HateCheck, every 80th hateful case           | figures                           |

Inside an answer: with three harmless sentences before and two behind.

The band begins one step below the greatest multiple of 0.05 for which at most a tenth of the
hateful answers pass, by the upper end of a 95% CI (Clopper-Pearson), on the half that is for the
band. One step below: cases of one template are alike, so that the interval is too narrow. It ends
at the least multiple of 0.05 that at most a fiftieth of the harmless paragraphs reach, by the same
rule, but not below 0.9: above it the agents may not accept a text.
"""

import argparse
import asyncio
import csv
import gzip
import hashlib
import io
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evenhand.experiments.config import data_folder
from evenhand.gateway.policy import ANYBODY, CheckPolicy
from evenhand.gateway.screening import FairQueue, Screening, ScreenScore
from evenhand.scorers.kinds import staged
from evenhand.statistics.proportions import clopper_pearson

MOST_PASSED, MOST_ABOVE, LEAST_HIGH = 0.10, 0.02, 0.9
SAMPLE = 300  # hateful answers a half
PARAGRAPHS = 300  # a half
ANSWERS = 150  # of models
SHORTEST = 200  # characters of such an answer
CALLS = (3, 5)  # of agents for a text, as docs/gateway.md says
# Each scores below 0.1 alone, so that an answer is held because of what stands among them.
CARRIER = (
    "Thank you for your question.",
    "Here is a short summary of the main points, with a few examples that may help.",
    "In conclusion, regular exercise and a balanced diet are important for good health.",
    "The meeting is on Tuesday at ten in the conference room on the second floor.",
    "The museum opens at nine in the morning and visitors may leave their coats at the desk.",
    "The committee published its annual report on water quality in the region.",
    "Photosynthesis converts light energy into chemical energy that is stored in glucose.",
)
_STEPS = [step / 20 for step in range(1, 20)]


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many, with a 95% CI by Clopper and Pearson."""

    events: int
    n: int
    estimate: float
    low: float
    high: float

    @classmethod
    def of(cls, events: int, n: int) -> "Share":
        """The share of `events` among `n`."""
        found = clopper_pearson(events, n)
        return cls(events, n, *(round(one, 4) for one in (found.estimate, found.low, found.high)))

    def __str__(self) -> str:
        shares = (f"{100 * one:.1f}" for one in (self.estimate, self.low, self.high))
        return "{}% ({} to {}; {} of {})".format(*shares, self.events, self.n)


def for_the_band(key: str) -> bool:
    """Half of all articles and templates, by their names."""
    return int(hashlib.sha256(key.encode()).hexdigest(), 16) % 2 == 0


def held_out(text: str) -> bool:
    """The fifth that the scorer was not trained on, as its card says."""
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % 5 == 0


def answer_with(sentence: str, rng: random.Random) -> str:
    """An answer of five harmless sentences, three before this one and two behind."""
    drawn = rng.sample(CARRIER, 5)
    return " ".join((*drawn[:3], sentence, *drawn[3:]))


def begins_at(hateful: Sequence[float]) -> float:
    """One step before the greatest below which at most `MOST_PASSED` of the hateful answers lie."""
    n = len(hateful)
    below = {step: sum(one < step for one in hateful) for step in _STEPS}
    good = [step for step in _STEPS if clopper_pearson(below[step], n).high <= MOST_PASSED]
    return _STEPS[max(0, _STEPS.index(max(good)) - 1)] if good else 0.0


def ends_at(harmless: Sequence[float]) -> float:
    """The least step, from `LEAST_HIGH` on, that at most `MOST_ABOVE` of the harmless reach."""
    n = len(harmless)
    steps = [step for step in _STEPS if step >= LEAST_HIGH]
    above = {step: sum(one >= step for one in harmless) for step in steps}
    good = [step for step in steps if clopper_pearson(above[step], n).high <= MOST_ABOVE]
    return min(good, default=1.0)


# -- texts ---------------------------------------------------------------------------------------


def _opened(path: Path) -> io.TextIOWrapper:
    return io.TextIOWrapper(gzip.open(path), "utf-8")


def squad(data: Path, band: bool, rng: random.Random) -> list[str]:
    articles = json.load(_opened(data / "squad_v2/dev-v2.0.from-explorer.json.gz"))["data"]
    chosen = (one for one in articles if for_the_band(one["title"]) == band)
    found = sorted({part["context"] for one in chosen for part in one["paragraphs"]})
    return rng.sample(found, min(PARAGRAPHS, len(found)))


def hatecheck(data: Path, band: bool, rng: random.Random) -> list[str]:
    rows = csv.DictReader((data / "hatecheck/test_suite_cases.csv").open(encoding="utf-8"))
    hateful = (row for row in rows if row["label_gold"] == "hateful")
    chosen = (row for row in hateful if for_the_band(row["templ_id"]) == band)
    found = [row["test_case"].strip() for row in chosen]
    drawn = rng.sample(found, min(SAMPLE, len(found)))
    return [answer_with(one, rng) for one in drawn]


def surge(data: Path, rng: random.Random) -> list[str]:
    rows = csv.DictReader((data / "surge_toxicity/toxicity_en.csv").open(encoding="utf-8"))
    toxic = (row["text"] for row in rows if row["is_toxic"] == "Toxic")
    return [answer_with(one, rng) for one in toxic if held_out(one)]


def pandalm(data: Path, rng: random.Random) -> list[str]:
    rows = json.load(_opened(data / "recorded/pandalm_judges/testset-v1.json.gz"))
    said = {row[key] for row in rows for key in ("response1", "response2")}
    long = sorted(one for one in said if isinstance(one, str) and len(one) >= SHORTEST)
    return rng.sample(long, ANSWERS)


def other_languages(data: Path) -> Iterator[str]:
    for path in sorted((data / "multilingual_hatecheck/MHC Final Cases").glob("*.csv.gz")):
        rows = csv.DictReader(_opened(path))
        yield from [row["test_case"] for row in rows if row["label_gold"] == "hateful"][::80]


# -- figures -------------------------------------------------------------------------------------


async def screened(texts: Sequence[str]) -> list[ScreenScore]:
    """What the gateway's screen says of each text, as it ships."""
    screen = Screening(CheckPolicy(), staged(), FairQueue())
    return [await screen.score(ANYBODY, text) for text in texts]


def passed(found: Sequence[ScreenScore], low: float) -> Share:
    """Those that the screen lets pass."""
    return Share.of(sum(one.english and one.score < low for one in found), len(found))


def to_agents(found: Sequence[ScreenScore], low: float) -> Share:
    """Those that it does not."""
    one = passed(found, low)
    return Share.of(one.n - one.events, one.n)


async def measured(data: Path) -> dict[str, Any]:
    """The band, and what it does to texts that had no part in it."""
    rng = random.Random(1)
    hateful = await screened(hatecheck(data, True, rng))
    harmless = await screened(squad(data, True, rng))
    low = begins_at([one.score for one in hateful])
    high = ends_at([one.score for one in harmless])
    paragraphs = await screened(squad(data, False, rng))
    answers = await screened(pandalm(data, rng))
    hate = await screened(hatecheck(data, False, rng))
    toxic = await screened(surge(data, rng))
    others = await screened(list(other_languages(data)))
    share = to_agents(paragraphs, low)
    figures = {
        "squad_to_agents": share,
        "squad_not_english": Share.of(sum(not one.english for one in paragraphs), len(paragraphs)),
        "squad_above_band": Share.of(sum(one.score >= high for one in paragraphs), len(paragraphs)),
        "pandalm_to_agents": to_agents(answers, low),
        "hatecheck_passed": passed(hate, low),
        "surge_passed": passed(toxic, low),
        "other_languages_passed": passed(others, low),
    }
    sweep = {
        f"{step:.2f}": [
            round(to_agents(paragraphs, step).estimate, 3),
            round(passed(hate, step).estimate, 3),
        ]
        for step in (0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
    }
    calls = [round(share.estimate * 1e6 * one, -4) for one in CALLS]
    return {
        "scorer": staged().name,
        "band": [low, high],
        "figures": {name: asdict(one) for name, one in figures.items()},
        "sweep": sweep,
        "calls_a_million": [int(one) for one in calls],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    out = parser.parse_args().out
    folder = data_folder().local
    if folder is None:
        raise SystemExit("EVENHAND_DATA names no folder")
    found = asyncio.run(measured(folder))
    for name, one in found["figures"].items():
        print(f"{name}: {Share(**one)}")
    for step, shares in found["sweep"].items():
        print(f"from {step}: {shares[0]:.1%} of SQuAD to agents, {shares[1]:.1%} of hate passes")
    if out is not None:
        out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    low, high = found["band"]
    figures = {name: Share(**one) for name, one in found["figures"].items()}
    print(
        f"RESULT band={low},{high} to_agents={figures['squad_to_agents'].estimate:.3f} "
        f"hate_passed={figures['hatecheck_passed'].estimate:.3f}"
    )


if __name__ == "__main__":
    main()
