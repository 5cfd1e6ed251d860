"""A judge of a run's texts, whose verdicts are a run of their own in a folder within that run.

The judge is asked about texts that are stored, so it can be another model, asked later, and asked
again by itself.
"""

from dataclasses import dataclass

import polars as pl

from evenhand.store import RunReader
from evenhand.store.folder import open_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeWithin:
    """Where the verdicts of a judge lie, who gives them, and the scores that each has."""

    folder: str
    role: str
    traits: tuple[str, ...]

    def run_of(self, run: RunReader) -> RunReader | None:
        """The judge's run over a run's texts; None where no judge was asked."""
        if not open_folder(run.path).exists(f"{self.folder}/run.json"):
            return None
        return RunReader(f"{run.path}/{self.folder}")

    def judge_of(self, run: RunReader) -> str | None:
        """The model that judged a run's texts."""
        inner = self.run_of(run)
        if inner is None:
            return None
        cast = inner.record.cast
        return str(cast.get(self.role, cast["default"])["model"])

    def marks(self, run: RunReader) -> pl.DataFrame:
        """`item_id` and a column for each score, null where the judge failed; no row where no judge
        was asked."""
        inner = self.run_of(run)
        if inner is None:
            return self.none()
        columns = {
            trait: pl.col("scores_after")
            .list.eval(pl.element().filter(pl.element().struct.field("name") == trait).struct[1])
            .list.first()
            for trait in self.traits
        }
        return inner.results().select("item_id", **columns).collect()

    def none(self) -> pl.DataFrame:
        """The marks of nobody."""
        schema = {"item_id": pl.String, **dict.fromkeys(self.traits, pl.Float64)}
        return pl.DataFrame(schema=schema)

    def doubts(self, run: RunReader) -> list[str]:
        """Why the judge of a run's texts is no witness."""
        judge = self.judge_of(run)
        if judge is None:
            return []
        reasons = []
        if judge == run.record.cast["default"]["model"]:
            reasons.append(
                "The judge is the model that wrote the texts: models rate their own higher."
            )
        in_loop = (pl.col("role") == self.role) & (pl.col("model") == judge)
        if not run.turns().filter(in_loop).head(1).collect().is_empty():
            reasons.append(f"The judge of {self.folder} also steered the method.")
        return reasons
