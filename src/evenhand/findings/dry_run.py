"""A dry run says what runs will ask, from their items and what their methods declare. It asks
nothing."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from evenhand.findings.display import Displayable

CHARACTERS_A_TOKEN = 4  # our choice, usual for English


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """One run that was not begun. A number is None where it is not known without asking."""

    name: str
    method: str
    items: int
    roles: tuple[str, ...]  # whom the method may ask
    calls: tuple[int, int] | None  # fewest and most, of all items
    declared_for_other_settings: bool  # its calls are declared for its default settings alone
    prompt_tokens: tuple[int, int] | None  # if every prompt is as long as the item's first
    completion_tokens: tuple[int, int] | None  # if every reply is as long as it may be
    cost: tuple[float, float] | None  # of these tokens, by the dearest model of the run


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun(Displayable):
    """What all runs of a command will ask, and which of them cannot be run."""

    runs: tuple[PlannedRun, ...]
    max_tokens: int
    currency: str | None
    batch: bool = False  # asked in batches, and priced so
    played_back: tuple[str, ...] = ()  # from another run, at no cost
    waiting: tuple[str, ...] = ()  # their items come from another run
    cannot_run: Mapping[str, str]  # run -> why

    @property
    def calls(self) -> tuple[int, int] | None:
        """All calls, fewest and most."""
        counts = [run.calls for run in self.runs if run.calls is not None]
        if len(counts) < len(self.runs):
            return None
        return sum(low for low, _ in counts), sum(high for _, high in counts)

    def to_dict(self) -> dict[str, Any]:
        return {"calls_made": 0, "calls": self.calls, **asdict(self)}
