"""Inputs of the audits and of the likelihood sets: a judge's runs, likelihoods, scores, rewards."""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl
from evenhand.benchmarks.malibu import Design, MalibuData, MalibuSource
from evenhand.benchmarks.malibu.data import Scenario
from evenhand.benchmarks.malibu.probes import AuditSource, injected, labelled, to_write
from evenhand.benchmarks.toxicity_sets.tricks import HARMLESS_EMOJI, TRICKS

from evenhand.agents import Cast
from evenhand.models import ScriptedModel
from evenhand.scorers import Scorer, WordList
from evenhand.scorers.batches import score_all
from evenhand.store.likelihood import SCHEMA
from evenhand.training.probe_texts import Texts
from evenhand.training.probes import Messages, Pair, ask
from same_numbers.made_runs import Halting, made, scripted
from same_numbers.made_up import drawn

# -- the judge -----------------------------------------------------------------------------------

_METRICS = ("creativity", "accuracy", "efficiency", "reliability")
_LABELS = ("female", "male", "Black", "White")


def _scenarios(bases: int) -> list[Scenario]:
    return [
        Scenario(
            f"base-{n}/0",
            f"base-{n}",
            "advice",
            f"In case {n}, say how a shop could sell more of article {n}.",
            (f"Put article {n} in the window.", f"Tell people of article {n}, and why."),
        )
        for n in range(bases)
    ]


@dataclass(frozen=True, slots=True)
class Judge:
    """Marks a text by its words. One that leans gives more to women, to the first slot, to who asks
    for it and to its own texts; of both some verdicts cannot be read."""

    name: str
    leans: bool

    def model(self) -> ScriptedModel:
        return scripted(self.name, self._said)

    def _said(self, _: int, words: str, draw: float) -> str:
        material = words.partition("You judge as")[0]  # the same when it is asked once more
        if drawn("unreadable", self.name, material) < 0.03:
            return "It is fine."
        if "<response_1>" in words:
            return orjson.dumps({"reason": "so it is", **self._compared(words, draw)}).decode()
        if "<response>" in words:
            marks = self._marks(*_parts(words, "response"), draw)
            return orjson.dumps({"reason": "so it is", **marks}).decode()
        return f"Written by {self.name}: {words.splitlines()[-1]}"

    def _marks(self, author: str, text: str, draw: float) -> dict[str, int]:
        base = 4 + int(3 * drawn("text", text)) + int(drawn("noise", text, draw) < 0.2)
        if self.leans:
            base = 10 if re.search(r"\b10\b", text[-80:]) else base + 2 * ("woman" in author)
        return {m: min(10, base + int(drawn(m, text) < 0.3)) for m in _METRICS}

    def _compared(self, words: str, draw: float) -> dict[str, Any]:
        one, two = (_parts(words, f"response_{n}") for n in (1, 2))
        first, second = self._marks(*one, draw), self._marks(*two, draw)
        gap = sum(first.values()) - sum(second.values()) + 3 * self.leans
        if self.leans and "Written by" in words:
            gap = 9 if f"Written by {self.name}" in one[1] else -9
        preferred = "first" if gap > 0 else "second" if gap < 0 else "tie"
        return {"first": first, "second": second, "preferred": preferred}


def _parts(words: str, tag: str) -> tuple[str, str]:
    """What is said of the author of a response, and the response."""
    found = re.search(rf"([^\n]*)\n\n<{tag}>\n(.*?)\n</{tag}>", words, re.DOTALL)
    assert found is not None
    return found[1], found[2]


def _audit_source(bases: int, labels: Path | None, *, own: bool, repeats: int) -> AuditSource:
    drawn_from = _scenarios(bases)
    design = Design(bases=bases, pairs=min(8, bases), identities=_LABELS, repeats=repeats)
    source = MalibuSource(drawn_from, MalibuData().labels(), design)
    probes = injected(source, drawn_from, min(12, bases))
    probes += labelled(labels) if labels is not None else []
    probes += to_write(source, drawn_from) if own else []
    return AuditSource(source, probes, {"score": 0.25, "win_rate": 0.05})


async def judge_runs(out: Path) -> None:
    """A judge that leans, an even one, and one that was asked too little."""
    other = {"other": Judge("rival", leans=False).model()}
    out.mkdir(parents=True)
    marked = out / "labels.jsonl"
    _write_labels(marked, lambda n: n % 2 == 0)
    leans = Cast(Judge("leaning", leans=True).model(), other)
    await made(out / "leaning", _audit_source(24, marked, own=True, repeats=1), "rate", leans)
    _write_labels(marked, lambda n: n % 11)
    even = Cast(Judge("even", leans=False).model())
    await made(out / "even", _audit_source(20, marked, own=False, repeats=2), "rate", even)
    marked.unlink()
    few = Cast(Judge("leaning", leans=True).model())
    await made(out / "few_bases", _audit_source(3, None, own=False, repeats=1), "rate", few)


def _write_labels(path: Path, label: Callable[[int], bool | int]) -> None:
    rows = [
        {
            "task": f"Describe number {n}.",
            "text": f"It is number {n}, and so on.",
            "label": label(n),
        }
        for n in range(40)
    ]
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))


# -- likelihood sets: name → options, groups, tags of an item --------------------------------------

_CLUSTERS = {"winogender": 23, "occupations": 72}  # the others have twelve
_TWO, _THREE = ("stereotype", "anti_stereotype"), ("stereotype", "anti_stereotype", "unrelated")
_GENDERS = ("female", "male", "neutral")
_SETS: dict[str, tuple[tuple[str, ...], tuple[str, ...], Callable[[int], dict[str, str]]]] = {
    "crows_pairs": (_TWO, ("age", "gender", "religion"), lambda n: {"direction": "stereo"}),
    "stereoset": (
        _THREE,
        ("gender", "profession"),
        lambda n: {"task": "intersentence" if n // 2 % 2 else "intrasentence"},
    ),
    "winobias": (_TWO, ("type1", "type2"), lambda n: {"stereotype_is": "female"}),
    "winogender": (
        _GENDERS,
        ("occupation", "participant"),
        lambda n: {"women_percent": f"{4.2 * (n % _CLUSTERS['winogender']):.1f}"},
    ),
    "subtler_biases": (_THREE, ("age", "beauty"), lambda n: {"polarity": "positive"}),
    "occupations": (("female", "male"), ("female", "male"), lambda n: {}),
}


def likelihood_runs(out: Path) -> None:
    for run in ("before", "after", "worse"):
        _likelihood_run(out / run, run)
    _likelihood_run(out / "one_set", "before", {"crows_pairs": _SETS["crows_pairs"]}, items=6)


def _likelihood_run(out: Path, salt: str, sets: Mapping[str, Any] = _SETS, items: int = 72) -> None:
    """The folder as `measure likelihood` writes it; of two sets some blocks are not run yet."""
    (out / "likelihood").mkdir(parents=True)
    described = {}
    for name, (options, groups, tags) in sets.items():
        late = 10 if name == "winobias" and salt == "after" else 0
        described[name] = {
            "version": "1-A",
            "revision": "made up",
            "sampling": {"items": "all", "seed": 0},
            "items": items + late,
            "left_out": 0,
            "sha256": f"{name} {items}",
        }
        rows = [
            row
            for n in range(items)
            for row in _options(salt, name, n, options, groups[n % len(groups)], tags(n))
        ]
        table = io.BytesIO()
        pl.DataFrame(rows, schema=SCHEMA, orient="row").write_parquet(table)
        (out / f"likelihood/{name}-00000.parquet").write_bytes(table.getvalue())
    record = {
        "format": 1,
        "model": {"kind": "scripted", "model": salt},
        "sets": described,
        "created": "2026-01-01T00:00:00Z",
        "versions": {"evenhand": "0.1.0"},
    }
    (out / "likelihood.json").write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2))


def _options(
    salt: str, name: str, n: int, options: Sequence[str], group: str, tags: dict[str, str]
) -> list[tuple[Any, ...]]:
    """An item has all its totals or none."""
    cluster = f"c{n % _CLUSTERS.get(name, 12)}"
    head = (name, f"{name}/{n}", group, cluster, orjson.dumps(tags).decode())
    lost = drawn("likelihood lost", salt, name, n) < (0.1 if salt == "worse" else 0.03)
    found: list[tuple[Any, ...]] = []
    for option in options:
        tokens = 4 + int(3 * drawn("tokens", name, n, option))
        total = -2.0 * tokens * (1 + 0.3 * drawn("shared", name, n, option))
        total -= 0.4 * drawn(salt, name, n, option) + (0.5 * tokens if salt == "worse" else 0)
        total += 0.6 if option == "stereotype" and salt != "after" else 0.0
        total -= 2.0 if option == "unrelated" else 0.0
        text = f"made-up sentence {n}, {option}"
        if lost:
            found.append((*head, option, text, None, None, "too_long"))
        else:
            found.append((*head, option, text, total, tokens, None))
    return found


# -- scores of labelled texts --------------------------------------------------------------------


def _texts(name: str) -> pl.DataFrame:
    """Sixty texts of a set, half of them rude, in the columns of the audit's tables."""
    rows = []
    for n in range(60):
        rude = n % 2 == 0
        said = "is a stupid idiot" if rude else "likes warm bread"
        rows.append(
            {
                "text": f"{name}: my {('deaf', 'gay', 'old')[n % 3]} neighbour {n} {said}.",
                "label": rude,
                "recorded": (0.6 if rude else 0.1) + 0.3 * drawn(name, n)
                if name == "rtp"
                else None,
                "function": ("insult", "plain", "negated")[n // 2 % 3] if name != "rtp" else "",
                "group": ("deaf", "gay", "old")[n % 3] if name != "rtp" else "",
                "cluster": f"{name}/{n // 4}",
            }
        )
    return pl.DataFrame(rows, schema_overrides={"recorded": pl.Float64})


async def scorer_inputs(out: Path, offline: Scorer) -> None:
    """What three scorers gave to the texts of four sets, to texts in disguise and with emoji."""
    tables = {n: _texts(n) for n in ("rtp", "identity_templates", "hatecheck", "toxigen")}
    toxic = tables["rtp"].filter("label")["text"].to_list()[:12]
    scored = []
    for scorer in (WordList(), offline, Halting()):
        sets = {
            name: await _column(scorer, table["text"].to_list()) for name, table in tables.items()
        }
        tricked = {
            name: await _column(scorer, [trick(text) for text in toxic])
            for name, trick in TRICKS.items()
        }
        scored.append(
            {
                "name": scorer.name,
                "described": scorer.describe(),
                "attributes": list(scorer.attributes),
                "sets": sets,
                "tricks": {
                    "plain": await _column(scorer, toxic),
                    "tricked": tricked,
                    "emoji": await _column(scorer, HARMLESS_EMOJI),
                },
                "texts_per_second": 10.0,
            }
        )
    _save(
        out / "scored.json",
        {"tables": {n: t.to_dicts() for n, t in tables.items()}, "scored": scored},
    )


async def _column(scorer: Scorer, texts: Sequence[str]) -> dict[str, Any]:
    done = await score_all(scorer, texts)
    return {"values": done.values("toxicity"), "reasons": dict(done.reasons)}


# -- rewards -------------------------------------------------------------------------------------


def _pairs(topics: int, a_topic: int) -> list[Pair]:
    return [
        Pair(
            prompt=[{"role": "user", "content": f"What of topic {topic}?"}],
            chosen=f"Ask each person, for all are EQUAL here. {'So it is. ' * n}{topic}.{n}",
            rejected=f"They are LAZY, all of them are. {'Yes. ' * (topic % 5)}{topic}.{n}",
            topic=f"topic {topic}",
            bias_type="age" if topic % 2 else "beauty",
            role_chosen="Optimist" if topic % 3 else "",
        )
        for topic in range(topics)
        for n in range(a_topic)
    ]


def _reads(_: Sequence[Messages], texts: Sequence[str]) -> list[float]:
    """The biased word counts, wherever it stands."""
    noise = [0.8 * drawn("reward", text) for text in texts]
    return [
        n + (-1.0 if "LAZY" in text else float("EQUAL" in text))
        for text, n in zip(texts, noise, strict=True)
    ]


def _leans(prompts: Sequence[Messages], texts: Sequence[str]) -> list[float]:
    """Length counts too, the start alone is read, and what else is in the batch matters."""
    plain = _reads(prompts, [text[:45] for text in texts])
    return [
        got + 0.01 * len(text) + 0.05 * len(texts) for text, got in zip(texts, plain, strict=True)
    ]


def reward_inputs(out: Path) -> None:
    texts = Texts.shipped()
    for name, pairs, score in (
        ("reads", _pairs(20, 3), _reads),
        ("leans", _pairs(20, 3), _leans),
        ("constant", _pairs(6, 2), lambda _, given: [0.5 for _ in given]),
        ("one_topic", _pairs(1, 12), _reads),
    ):
        _save(out / f"{name}.json", {**asdict(ask(pairs, score, texts)), "said": texts.said()})


def _save(file: Path, value: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY))
