"""Texts of a user's own are scored by one scorer, with a bar on the way."""

from collections.abc import Sequence

from rich.markup import escape
from rich.progress import Progress

from evenhand.cli.screen import err
from evenhand.errors import UserError
from evenhand.scorers import Scorer
from evenhand.scorers.batches import score_all


async def scored(scorer: Scorer, texts: Sequence[str], attribute: str) -> list[float | None]:
    """Give one score of each text, None where there is none, and close the scorer."""
    try:
        if attribute not in scorer.attributes:
            has = ", ".join(scorer.attributes)
            raise UserError(f"{scorer.name} has no score for {attribute!r}, only for: {has}")
        with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
            bar = progress.add_task(escape(scorer.name), total=len(texts))
            done = await score_all(scorer, texts, lambda n: progress.advance(bar, n))
        return done.values(attribute)
    finally:
        await scorer.close()
