"""A plan is a run before it starts: everything that decides its result, and the record of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from evenhand.agents import Cast, Limits
from evenhand.agents.cast import require_tools
from evenhand.agents.conversation import Declared, declared_by
from evenhand.agents.method import Method
from evenhand.agents.method import settings as settings_of
from evenhand.agents.tools.search.base import ROLE as SEARCH
from evenhand.core import registry
from evenhand.models.batch import BatchTiming
from evenhand.runs.runners.source import Source, agents_of
from evenhand.runs.store.run_record import RunRecord, now, versions


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """A plan says what to run. `concurrency` bounds the items at work at once; it does not change
    the result."""

    method: Method
    cast: Cast
    source: Source
    limits: Limits = field(default_factory=Limits)
    seed: int | None = None
    concurrency: int = 64
    settings: Mapping[str, Any] = field(default_factory=dict)  # as the record lists them
    batch: BatchTiming | None = None  # in batches; None: each call goes out by itself
    reuse: Sequence[str | Path] = ()  # runs whose equal calls are not sent again
    declared: Declared = field(init=False)  # the agents that the method may ask

    def __post_init__(self) -> None:
        agents = agents_of(self.method, self.source)
        require_tools(agents, self.cast)  # before anything is asked or written
        object.__setattr__(self, "declared", declared_by(agents))

    def record(self) -> RunRecord:
        agents = agents_of(self.method, self.source)
        prompts = {agent.prompt.label: agent.prompt.sha256 for agent in agents}
        cast, source = self.cast.describe(agents), self.source.fingerprint()
        parts: list[tuple[registry.Group, str]] = [
            ("methods", self.method.name),
            *_players(cast.values()),
            *_instrument(source),
        ]
        return RunRecord(
            method={"name": self.method.name, "settings": settings_of(self.method)},
            prompts=dict(sorted(prompts.items())),
            cast=cast,
            source=source,
            limits=asdict(self.limits),
            seed=self.seed,
            settings=dict(self.settings),
            created=now(),
            versions=versions(parts),
        )


def _instrument(source: Mapping[str, Any]) -> Iterator[tuple[registry.Group, str]]:
    """Name the instrument that the items are of, where one made them."""
    if "benchmark" in source:
        yield "instruments", str(source["benchmark"])


def _players(players: Iterable[dict[str, Any]]) -> Iterator[tuple[registry.Group, str]]:
    """Name the registered parts among those who play the roles."""
    for described in players:
        if described["kind"] == "scorer":
            yield "scorers", str(described["scorer"].get("kind"))
        elif described["kind"] == SEARCH:
            yield "searches", str(described["model"]).partition("@")[0]
