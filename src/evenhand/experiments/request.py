"""A request says what is asked of a run by a command, Python code or a gateway. Caps may be for
several runs together, and a watch is told what happens."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evenhand.agents import Agent, Cast
from evenhand.core.errors import UserError
from evenhand.experiments.certificates import Certified
from evenhand.experiments.settings import RunSettings
from evenhand.findings.display import RemarkOrText
from evenhand.methods import Method
from evenhand.models.base import ChatModel
from evenhand.runs.runners import Progress, Source, StopSignal
from evenhand.runs.store.folder import open_folder
from evenhand.runs.store.spending import Spent, spent_on

OpenCast = Callable[[Method], Awaitable[Cast]]
"""Opens the models that a method's agents are played by; they are closed when the run has ended."""
Following = Callable[[], Awaitable[frozenset[int]]]
"""Gives the positions that are asked next, by what was answered so far; none ends the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request names items, a method, who plays its roles, and the settings of the run."""

    source: Source
    method: Method
    open_cast: OpenCast
    settings: RunSettings
    models_at_hand: bool = False  # they exist, so a folder's record can be compared with them
    owns_models: bool = True  # False: the caller closes the models, and may share them
    named: Mapping[str, str] = field(default_factory=dict)  # role -> model, where one was named
    systems: Mapping[str, str] = field(default_factory=dict)  # role -> system prompt, "" for none
    files_alone: frozenset[str] = frozenset()  # models whose batches no provider bills
    params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # role -> of its model
    ray_address: str | None = None
    is_audit: bool = False  # of a judge, who cannot be certified yet
    following: Following | None = None  # of a run that may end before all of its items are asked

    async def close(self, cast: Cast) -> None:
        """Close the models of a cast, unless they belong to the caller."""
        if self.owns_models:
            await cast.close()

    @property
    def asks_nobody(self) -> bool:
        """The request needs no model: it is a replay, a dummy, or stored answers."""
        return self.settings.replay is not None or not self.method.agents()

    def system_for(self, agent: Agent[Any]) -> str | None:
        """The system prompt that an agent will get, by what was named; no model is opened."""
        return self.system_of(agent.role) if agent.takes_system else None

    def system_of(self, role: str) -> str | None:
        """The system prompt of the model that plays a role."""
        return self.systems.get(role, self.systems.get("default")) or None


def with_player(request: Request, role: str, player: Callable[[], ChatModel]) -> Request:
    """Replace the model of one role in a request.

    Args:
        request: The request.
        role: The role, which loses its system prompt.
        player: Makes the model each time a cast is opened.

    Returns:
        The new request.
    """

    async def opened(method: Method) -> Cast:
        cast = await request.open_cast(method)
        system = {name: prompt for name, prompt in cast.system.items() if name != role}
        return Cast(cast.default, {**cast.roles, role: player()}, system)

    return replace(request, open_cast=opened)


def within(settings: RunSettings, folder: str) -> RunSettings:
    """The settings of one run of several: it is in a folder within theirs, and takes replies from
    the same folder within the runs that are replayed or reused.

    Args:
        settings: The settings of all runs together.
        folder: The folder of this run.

    Returns:
        Its settings. A reused run that has no such folder is left out.
    """

    def inside(place: str | Path) -> str:
        return f"{str(place).rstrip('/')}/{folder}"

    reuse = map(inside, settings.reuse)
    return replace(
        settings,
        out=inside(settings.out),
        replay=inside(settings.replay) if settings.replay else None,
        reuse=tuple(run for run in reuse if open_folder(run).exists("run.json")),
    )


def spent_within(caps: RunSettings, folders: Iterable[str]) -> Spent:
    """Count what these runs have spent so far; without a cap nothing is counted."""
    if (caps.max_calls, caps.max_cost) == (None, None):
        return Spent()
    return sum((spent_on(folder, caps.prices) for folder in folders), Spent())


def left_for(request: Request, caps: RunSettings, spent: Spent) -> Request:
    """Give the request what is left of the caps; no cap stays none.

    Args:
        request: The request.
        caps: The settings whose caps are for all runs together.
        spent: What the other runs have spent.

    Returns:
        The same request with smaller caps.
    """
    calls, cost = caps.max_calls, caps.max_cost
    left = replace(
        request.settings,
        max_calls=None if calls is None else max(0, calls - spent.calls),
        max_cost=None if cost is None else max(0.0, cost - spent.cost),
    )
    return replace(request, settings=left)


class Watch:
    """A watch that tells nobody anything. A command line tells a person; see
    `evenhand.cli.execution`."""

    def note(self, text: RemarkOrText) -> None:
        """Tell something that a person should know, such as which of several methods is under
        way."""
        del text

    def judges(self, found: Sequence[Certified]) -> None:
        """Tell the judges that a run would ask, each with its certificate or why it has none."""
        del found

    def refuse(self, uncertified: Certified) -> UserError:
        """Make the error that ends a request whose judge must have a certificate and has none."""
        judge, standing = uncertified
        return UserError(
            f"{judge.role} is played by {judge.model!r}: {standing.says}. No model was called. "
            f"Audit it with `evenhand audit {judge.audit}`"
        )

    @asynccontextmanager
    async def progress(self, progress: Progress) -> AsyncIterator[None]:
        """Surround the run, with the counters that it updates."""
        del progress
        yield

    def stop(self) -> StopSignal:
        """Give the signal that stops the run when somebody sets it."""
        return StopSignal()
