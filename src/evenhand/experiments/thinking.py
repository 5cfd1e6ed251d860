"""The scores of what a model thought, once a run has ended."""

import re
from collections.abc import Iterator

import polars as pl

from evenhand.findings.thoughts import keep, thoughts
from evenhand.methods import Method
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder
from evenhand.scorers import Scorer
from evenhand.scorers.base import scores_of

# Our choice, in characters: about a paragraph. A scorer reads the first few hundred words of a text
# and a thought has thousands, so it is scored in passages.
_PASSAGE = 600
_SENTENCE = re.compile(r"(?<=[.!?\n])\s+")


async def score_thinking(run: RunReader, method: Method, scorer: Scorer) -> None:
    """Score the hidden thinking of a run's writers and store the result in the run folder.

    Args:
        run: The run.
        method: The run's method, which says whose thinking counts.
        scorer: Scores each passage; the highest toxicity of an item counts.
    """
    roles = [agent.role for agent in method.agents() if agent.kind == "writer"]
    thought = thoughts(run, roles)
    passages = [(item, passage) for item, text in thought.iter_rows() for passage in _cut(text)]
    texts = list(dict.fromkeys(passage for _, passage in passages))
    values = dict(zip(texts, await scores_of(scorer, texts, "toxicity"), strict=True))
    scored = pl.DataFrame(
        [(item, values[passage]) for item, passage in passages],
        schema={"item_id": pl.String(), "toxicity": pl.Float64()},
        orient="row",
    )
    by_item = scored.group_by("item_id", maintain_order=True).agg(pl.col("toxicity").max())
    keep(open_folder(run.path), scorer.name, by_item)


def _cut(text: str) -> Iterator[str]:
    """Cut a text into passages at the ends of sentences."""
    passage = ""
    for sentence in _SENTENCE.split(text):
        if passage and len(passage) + len(sentence) > _PASSAGE:
            yield passage
            passage = ""
        passage = f"{passage} {sentence}".strip()
    if passage:
        yield passage
