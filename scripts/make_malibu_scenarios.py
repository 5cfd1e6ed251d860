# ruff: noqa: T201
"""Make the derived scenarios of the judge benchmark from the base scenarios.

    python scripts/make_malibu_scenarios.py

Reads scripts/malibu/*.toml, a file for each kind, and writes the benchmark's scenarios.jsonl. A
base is a task and two responses with slots such as {role} and {place}; a derived scenario fills
them. Values are drawn so that each is used about as often as the others, by a hash with SEED: the
same files give the same bytes. A text that breaks a rule stops the script.
"""

import hashlib
import itertools
import json
import re
import string
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "malibu"
OUT = Path(__file__).parents[1] / "src/evenhand/instruments/judge/scenarios.jsonl"
KINDS = "health school trade office service public home community tech".split()
SEED, DERIVED = 0, 10
WORDS, APART = (45, 80), 0.10  # of a response; how much longer one of the two may be

Filling = tuple[str, ...]


def main() -> None:
    lines = list(made())
    OUT.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    print(f"{len(lines)} scenarios, {OUT.stat().st_size / 1e6:.2f} MB: {OUT}")


def made() -> Iterator[str]:
    """The lines of the file. Raises where a text breaks a rule."""
    hints = hint_words()
    for kind in KINDS:
        for base in tomllib.loads((HERE / f"{kind}.toml").read_text("utf-8"))["base"]:
            for number, scenario in enumerate(derived(base)):
                row = {"id": f"{base['id']}/{number}", "base": base["id"], "kind": kind, **scenario}
                broken = list(faults(row, hints))
                if broken:
                    raise ValueError(f"{row['id']}: {'; '.join(broken)}")
                yield json.dumps(row, ensure_ascii=False)


def derived(base: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    slots: dict[str, list[str]] = base["slots"]
    used = {name: _slots(base[name]) for name in ("task", "a", "b")}
    if used["a"] != used["b"] or used["task"] | used["a"] != slots.keys():
        raise ValueError(f"{base['id']}: slots given {sorted(slots)}, used {used}")
    for filling in _drawn(base["id"], list(itertools.product(*slots.values()))):
        values = dict(zip(slots, filling, strict=True))
        texts = [base[name].format(**values) for name in ("a", "b")]
        yield {"task": base["task"].format(**values), "responses": texts}


def _drawn(base: str, fillings: list[Filling]) -> list[Filling]:
    """One after the other that whose values were used least so far; a hash decides among equals."""
    used: Counter[tuple[int, str]] = Counter()
    drawn: list[Filling] = []
    while len(drawn) < DERIVED:
        left = [filling for filling in fillings if filling not in drawn]
        if not left:
            raise ValueError(f"{base}: only {len(fillings)} ways to fill the slots")
        best = min(left, key=lambda f: (sum(used[slot] for slot in enumerate(f)), _hash(base, f)))
        used.update(enumerate(best))
        drawn.append(best)
    return drawn


def _hash(base: str, filling: Filling) -> str:
    return hashlib.sha256("\n".join([str(SEED), base, *filling]).encode()).hexdigest()


def _slots(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def faults(row: Mapping[str, Any], hints: Mapping[str, set[str]]) -> Iterator[str]:
    """The rules that one scenario breaks."""
    first, second = row["responses"]
    lengths = sorted(len(text.split()) for text in (first, second))
    if lengths[0] < WORDS[0] or lengths[1] > WORDS[1]:
        yield f"{lengths} words"
    if lengths[1] > lengths[0] * (1 + APART):
        yield f"{lengths} words are too far apart"
    if numbers(first) != numbers(second):
        yield f"other numbers: {numbers(first)} and {numbers(second)}"
    for axis, found in hinted(" ".join([row["task"], first, second]), hints).items():
        yield f"hints at {axis}: {found}"


def numbers(text: str) -> list[str]:
    """The figures of a text, each once: equal content has the same ones."""
    return sorted(set(re.findall(r"\d+(?:[.:]\d+)*", text)))


def hint_words() -> dict[str, set[str]]:
    listed = tomllib.loads((HERE / "hints.toml").read_text("utf-8"))
    return {axis: set(words.split()) for axis, words in listed.items()}


def hinted(text: str, hints: Mapping[str, set[str]]) -> dict[str, list[str]]:
    """The words of a text that hint at its author, by what they hint at."""
    words = re.findall(r"\w+(?:-\w+)*", text)
    found = {axis: [w for w in words if w in of or w.lower() in of] for axis, of in hints.items()}
    return {axis: those for axis, those in found.items() if those}


if __name__ == "__main__":
    main()
