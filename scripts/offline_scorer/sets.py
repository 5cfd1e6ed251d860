"""The licensed sets: what a text should score, and who may see it.

Licences allow weights to be shared: RealToxicityPrompts Apache-2.0, Davidson MIT, ToxiGen
CDLA-Permissive-2.0, OpenAI moderation MIT, Surge MIT. The texts that models wrote for DecodingTrust
are CC BY-SA 4.0: they are scored in cross-validation and never trained on. HateCheck and the
Jigsaw sets are for tests alone.
"""

import csv
import gzip
import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from offline_scorer.sentences import sentences, with_another_group

ATTRIBUTES = (
    "toxicity",
    "severe_toxicity",
    "insult",
    "profanity",
    "identity_attack",
    "threat",
    "sexually_explicit",
    "flirtation",
    "hate",
)
RECORDED = len(ATTRIBUTES) - 1  # the first so many have recorded scores; hate has labels alone


@dataclass(frozen=True, slots=True)
class Example:
    text: str
    wanted: dict[str, float]  # an attribute that is not named is not trained on this text
    source: str
    group: str = ""  # texts of one group are never split between training and validation


def held_out(key: str) -> bool:
    """A fifth, by the text itself, so that whoever audits the scorer can find it again."""
    return int(hashlib.sha256(key.encode()).hexdigest(), 16) % 5 == 0


def recorded(data: Path) -> list[Example]:
    """Texts with recorded Perspective scores. Grouped by web page: its prompts share wording."""
    found, pages = [], {}
    for name in ("toxic", "nontoxic"):
        for i, row in enumerate(_json_lines(data / f"rtp-decodingtrust/{name}.jsonl.gz")):
            pages[f"{name}.{i}"] = row["filename"]
            for part in ("prompt", "continuation"):
                found += _with_scores(row[part]["text"], row[part], part, row["filename"])
    for model in ("gpt3", "gpt4"):
        path = data / f"rtp-decodingtrust/toxic.{model}.annotated.filtered.jsonl.gz"
        for row in _json_lines(path):
            page = pages[f"toxic.{row['prompt']['idx']}"]
            found += _with_scores(row["prompt"]["text"], row["prompt"]["score"], model, page)
    return found


def _with_scores(text: str, row: dict, source: str, page: str) -> list[Example]:
    if row.get("toxicity") is None or not text.strip():
        return []
    wanted = {name: row[name] for name in ATTRIBUTES if row.get(name) is not None}
    return [Example(text, wanted, source, page)]


def labelled(data: Path) -> list[Example]:
    """Labels become targets in coarse steps, ours, near what Perspective gives such texts."""
    return [*_davidson(data), *_toxigen(data), *_surge(data), *_moderation(data)]


def _davidson(data: Path) -> Iterator[Example]:
    steps = {
        "0": {"toxicity": 0.85, "identity_attack": 0.7, "hate": 0.85},
        "1": {"toxicity": 0.75, "hate": 0.35},
        "2": {"toxicity": 0.12, "identity_attack": 0.05, "hate": 0.05},
    }
    for row in csv.DictReader(_opened(data / "davidson/labeled_data.csv.gz")):
        # Three quarters are "offensive", by key words: a fifth of them says as much.
        if (
            row["class"] != "1"
            or int(hashlib.sha256(row["tweet"].encode()).hexdigest()[:4], 16) % 5 == 0
        ):
            yield Example(row["tweet"], steps[row["class"]], "davidson")


def _toxigen(data: Path) -> Iterator[Example]:
    for row in json.load(_opened(data / "toxigen/toxiGen.json.gz")):
        share = (row["toxicity_score"] - 1) / 4
        wanted = {
            "toxicity": 0.05 + 0.75 * share,
            "identity_attack": 0.03 + 0.87 * share,
            "hate": 0.03 + 0.94 * share,
        }
        yield Example(row["text"], wanted, "toxigen")
    for path in sorted((data / "toxigen/demonstrations").rglob("*.txt")):
        cruel = path.name.startswith("hate")
        wanted = {
            "toxicity": 0.75 if cruel else 0.07,
            "identity_attack": 0.85 if cruel else 0.05,
            "hate": 0.92 if cruel else 0.04,
        }
        for line in filter(str.strip, path.read_text(encoding="utf-8").splitlines()):
            yield Example(line.strip(), wanted, "toxigen demonstrations")


def _surge(data: Path) -> Iterator[Example]:
    for row in csv.DictReader((data / "surge_toxicity/toxicity_en.csv").open(encoding="utf-8")):
        yield Example(
            row["text"], {"toxicity": 0.8 if row["is_toxic"] == "Toxic" else 0.1}, "surge"
        )


def _moderation(data: Path) -> Iterator[Example]:
    for row in _json_lines(data / "openai_moderation/samples-1680.jsonl.gz"):
        hateful, sexual, violent = (
            any(row.get(label) for label in labels)
            for labels in (("H", "HR", "H2"), ("S", "S3"), ("V", "V2"))
        )
        wanted = {"toxicity": 0.8 if hateful else 0.55 if sexual or violent else 0.12}
        if "H" in row:
            wanted["identity_attack"] = 0.8 if row["H"] else 0.05
            wanted["hate"] = 0.9 if row["H"] else 0.05
        if "S" in row:
            wanted["sexually_explicit"] = 0.8 if sexual else 0.05
        yield Example(row["prompt"], wanted, "openai moderation")


def own(n: int, seed: int) -> list[Example]:
    return [
        Example(
            made.text,
            {
                "toxicity": made.toxicity,
                "identity_attack": made.identity_attack,
                "hate": made.hate,
            },
            "own",
            "\n".join(made.frames),
        )
        for made in sentences(n, seed)
    ]


def of_known_frames(made: list[Example]) -> list[Example]:
    """For training: neither their frame nor that of a sentence they quote is held out."""
    return [one for one in made if not any(map(held_out, one.group.split("\n")))]


def of_new_frames(made: list[Example]) -> list[Example]:
    return [one for one in made if held_out(one.group.split("\n")[0])]


def about_other_groups(examples: list[Example], rng: random.Random) -> list[Example]:
    """ToxiGen's sentences once more, about another group, wanted the same."""
    pairs = [
        (with_another_group(one.text, rng), one) for one in examples if "toxigen" in one.source
    ]
    return [Example(text, one.wanted, one.source) for text, one in pairs if text]


@dataclass(frozen=True, slots=True)
class TestSet:
    name: str
    texts: list[str]
    toxic: list[bool]
    kinds: list[str] = field(default_factory=list)  # what a case tests, where the set says so
    templates: list[str] = field(default_factory=list)  # of each case, where the set has them
    every: int = 1  # every so manyth is scored; no training sentence may equal any


def test_sets(data: Path) -> list[TestSet]:
    cases = list(csv.DictReader((data / "hatecheck/test_suite_cases.csv").open(encoding="utf-8")))
    found = [
        TestSet(
            "HateCheck",
            [case["test_case"] for case in cases],
            [case["label_gold"] == "hateful" for case in cases],
            [case["functionality"] for case in cases],
            [case["templ_id"] for case in cases],
        )
    ]
    jigsaw = data / "jigsaw_unintended_bias"
    rows = [
        row
        for name in ("en_sentence_templates", "intersectional_madlibs")
        for row in csv.DictReader(_opened(jigsaw / f"{name}.csv.gz"))
    ]
    found.append(
        TestSet(
            "identity templates",
            [row["phrase"] for row in rows],
            [row["toxicity"] == "toxic" for row in rows],
            every=20,
        )
    )
    talk = list(csv.DictReader(_opened(jigsaw / "toxicity_nonfuzzed_testset.csv.gz")))
    found.append(
        TestSet(
            "Wikipedia talk",
            [row["comment"] for row in talk],
            [row["toxic"] == "True" for row in talk],
        )
    )
    return found


def _opened(path: Path):
    return gzip.open(path, "rt", encoding="utf-8", newline="")


def _json_lines(path: Path) -> Iterator[dict]:
    return map(json.loads, _opened(path))
