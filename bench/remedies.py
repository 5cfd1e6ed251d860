"""Does `mitigate` return answers that are worse than what it was given?

    EVENHAND_DATA=… python -m bench.remedies      # 1,000 recorded answers of eight models

The answers are recorded ones (`recorded/political_monthly`). Three evaluators judge each draft, all
of them programs: `offline` decides on harm, `wordlist` on insults, `regard` on how a text speaks of
people. The reviser is scripted and careless: it returns the answer without a sentence, another
recorded answer, or the answer with an insult. The same run is made with `keep=best` and with
`keep=last`, the papers' loop. Harm is scored again here, apart from what the method recorded.
"""

import argparse
import asyncio
import gzip
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evenhand import aio
from evenhand.agents import Cast
from evenhand.core import Item
from evenhand.experiments.dossiers import remedy_of
from evenhand.findings.run import Run
from evenhand.methods import StarDTox
from evenhand.methods.shared_settings import Keep
from evenhand.models import ModelRequest, ScriptedModel
from evenhand.scorers import Scorer, ScorerModel, Scores, Unscored
from evenhand.scorers.kinds import offline
from evenhand.scorers.regard import RegardScorer
from evenhand.scorers.wordlist import WordList

ANSWERS = 1_000
TEAM = """
[[evaluator]]
name = "insulting"
below = 0.5
scorer = "toxicity"

[[evaluator]]
name = "ill_spoken"
below = 0.5
scorer = "toxicity"
"""
INSULTS = ("They are idiots, all of them.", "Only a fool thinks otherwise.", "What a stupid lot.")


def recorded(folder: Path, wanted: int) -> list[Item]:
    """The first so many recorded answers, as items to repair."""
    file = folder / "recorded" / "political_monthly" / "statements_answers.jsonl.gz"
    items = []
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            row = json.loads(line)
            if row["response_text"].strip():
                prompt = f"Do you agree with statement {row['statement_id']}?"
                items.append(Item(id=str(number), prompt=prompt, answer=row["response_text"]))
    return items[:wanted]


class Careless:
    """A reviser that makes a text better, worse, or something else."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items

    def __call__(self, request: ModelRequest) -> str:
        words = request.messages[-1].content
        drawn = int(hashlib.sha256(words.encode()).hexdigest(), 16)
        other = self._items[drawn % len(self._items)].answer or ""
        kind = drawn // 1_009 % 3
        if kind == 0:
            return f"{other} {INSULTS[drawn // 7 % len(INSULTS)]}"
        return other if kind == 1 else f"{other.split('.')[0]}."


class Remembered:
    """A scorer that looks at equal texts once."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer, self._known = scorer, dict[str, Scores | Unscored]()
        self.name, self.attributes = scorer.name, scorer.attributes

    def describe(self) -> dict[str, Any]:
        return self._scorer.describe()

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known |= dict(zip(new, await self._scorer.score(new), strict=True)) if new else {}
        return [self._known[text] for text in texts]

    async def close(self) -> None:
        return None


async def harms(texts: Sequence[str], scorers: Sequence[Scorer]) -> list[tuple[float, ...]]:
    """The toxicity of each text by each scorer."""
    columns = [await scorer.score(texts) for scorer in scorers]
    return [
        tuple(one.toxicity if isinstance(one, Scores) else float("nan") for one in row)
        for row in zip(*columns, strict=True)
    ]


async def repaired(items: list[Item], scorers: Sequence[Scorer], keep: Keep, out: Path) -> Run:
    method = StarDTox(bias_brain="rule", performance=False, evaluators=TEAM, keep=keep)
    roles = ("scorer", "insulting", "ill_spoken")
    players = {role: ScorerModel(one) for role, one in zip(roles, scorers, strict=True)}
    cast = Cast(ScriptedModel(Careless(items)), players)
    return await aio.mitigate(items, model=cast, method=method, out=out)


async def main(wanted: int) -> int:
    items = recorded(Path(os.environ["EVENHAND_DATA"]), wanted)
    scorers: list[Scorer] = [Remembered(one) for one in (offline(), WordList(), RegardScorer())]
    worse = {}
    with tempfile.TemporaryDirectory() as folder:
        for keep in ("best", "last"):
            run = await repaired(items, scorers, keep, Path(folder) / keep)
            rows = run.results().sort("position")
            found = remedy_of(run.reader)
            assert found is not None
            before = await harms([item.answer or "" for item in items], scorers)
            after = await harms(rows["text"].to_list(), scorers)
            pairs = list(zip(before, after, strict=True))
            worse[keep] = sum(any(a > b for b, a in zip(*pair, strict=True)) for pair in pairs)
            clean = [
                item.answer == text
                for item, text, marks in zip(items, rows["text"], before, strict=True)
                if marks[0] < 0.1 and max(marks[1:]) < 0.5
            ]
            print(f"keep={keep}: {len(items):,} answers, outcomes {found.outcomes}")
            print(f"  clean as given {len(clean):,}, returned to the byte {sum(clean):,}")
            print(f"  above a threshold {found.above_before:,} -> {found.above_after:,}")
            print(f"  worse than given: {worse[keep]:,} (by the method's record: {found.worse:,})")
            if keep == "best":
                told = " ".join(f"{name}={count}" for name, count in found.outcomes.items())
                untouched = len(clean) == sum(clean)
    print(
        f"RESULT answers={len(items)} worse={worse['best']} worse_last={worse['last']} {told} "
        f"clean_untouched={untouched}"
    )
    return 0 if worse["best"] == 0 and untouched else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=ANSWERS)
    sys.exit(asyncio.run(main(parser.parse_args().answers)))
