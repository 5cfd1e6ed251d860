"""Several methods over the same items, one run folder each, with caps for all of them together; and
over benign texts, where it is counted what each method spoils."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evenhand.agents import Limits
from evenhand.core.errors import UserError
from evenhand.experiments.measuring import Measurement, RunModels, check
from evenhand.experiments.request import Request, Watch, left_for, spent_within, with_player
from evenhand.experiments.running import RunEnd, execute, is_done, require_certified
from evenhand.experiments.settings import RunSettings
from evenhand.findings.comparison import refuse_who_picked
from evenhand.findings.frontier import VOTE, FrontierArm, equal_calls, odd
from evenhand.findings.sweep import Sweep, outcomes, sweep
from evenhand.instruments.overcorrection.instrument import (
    OverCorrection,
    OverCorrectionOptions,
    refuse_what_repairs_no_text,
)
from evenhand.methods import Method, named, settings
from evenhand.methods.build import build_method
from evenhand.methods.shared_settings import OTHER_CRITIQUE
from evenhand.runs.runners.replay import critiques_of
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import as_file_name, open_folder
from evenhand.runs.store.spending import Spent
from evenhand.views.files import to_json, to_parquet


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepMethod:
    """A method of a sweep, under the name it was asked for by. `lender` names the method of the
    sweep whose recorded critiques it is given (the control `critique=other`)."""

    name: str
    method: Method
    lender: str | None = None

    @classmethod
    def of(cls, method: Method | str) -> "SweepMethod":
        """A method as an object, or by its name with settings after a colon, joined by a plus."""
        if not isinstance(method, str):
            return cls(name=method.name, method=method)
        name, _, rest = method.partition(":")
        return cls(name=method, method=build_method(name, rest.split("+") if rest else []))

    @property
    def folder(self) -> str:
        """The name of its run folder."""
        return as_file_name(self.name)

    @property
    def changed_settings(self) -> str:
        """The settings that are not the usual ones of the method, in words."""
        usual = settings(type(self.method)())
        changed = {k: v for k, v in settings(self.method).items() if v != usual.get(k)}
        text = ", ".join(f"{name}={value}" for name, value in changed.items())
        return f" ({text})" if text else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSeries:
    """Methods that are run one after the other, each into a folder within `request.settings.out`.

    With `calls`, an item may make twice as many: the settings of a method keep it within them, and
    the rest is room to ask once more for each reply that cannot be read.
    """

    request: Request  # its method is replaced by each of the sweep's
    measurement: Measurement
    watch: Watch
    calls: int | None = None

    async def run(self, chosen: Sequence[SweepMethod]) -> RunEnd:
        """Run until all are done, a signal comes or a cap is reached."""
        ended = RunEnd()
        if self.request.settings.require_certified_judges:  # a later one must not be refused late
            methods = [entry.method for entry in chosen]
            await require_certified(self.request, methods, self.watch)
        for entry in chosen:
            await check(self.measurement, self._request(entry, chosen))
        for number, entry in enumerate(chosen, 1):
            self.watch.note(
                f"method {number} of {len(chosen)}: {entry.name}{entry.changed_settings}"
            )
            request = self._request(entry, chosen)
            ended = RunEnd() if await is_done(request) else await execute(request, self.watch)
            if ended.early:
                return replace(ended, calls=self.spent(chosen).calls)
            await self._complete(request)
            if self.calls is not None:  # its methods are compared: refuse before more is asked
                refuse_who_picked(RunReader(self.place(entry)))
        return ended

    def place(self, entry: SweepMethod) -> str:
        """The run folder of a method."""
        return f"{self.request.settings.out}/{entry.folder}"

    def runs(self, chosen: Sequence[SweepMethod]) -> dict[str, RunReader]:
        return {entry.name: RunReader(self.place(entry)) for entry in chosen}

    async def arms(self, chosen: Sequence[SweepMethod]) -> list[FrontierArm]:
        """Give the runs, and the vote that each is compared with at equal calls.

        A vote has as many calls as the method took on average, rounded up to an odd number. Votes
        of fewer calls are replayed from the turns of the full one, so that they cost none.
        """
        runs = self.runs(chosen)
        full = next((entry for entry in chosen if entry.name == VOTE), None)
        if full is None or self.calls is None:  # there is nothing to vote among
            return [FrontierArm(name=name, run=run) for name, run in runs.items()]
        votes: dict[int, FrontierArm] = {odd(self.calls): FrontierArm(name=VOTE, run=runs[VOTE])}
        references = self.measurement.instrument.compared_with()
        arms = []
        for name, run in runs.items():
            if name in references:
                arms.append(FrontierArm(name=name, run=run))
                continue
            equal = equal_calls(run, self.calls)
            if equal not in votes:
                vote = f"{VOTE}:calls={equal}"  # it may be one of those that were asked for
                vote_run = runs.get(vote)
                votes[equal] = (
                    FrontierArm(name=vote, run=vote_run)
                    if vote_run
                    else await self._vote(equal, full)
                )
            arms.append(FrontierArm(name=name, run=run, equal_calls=votes[equal].name))
        fewer = [votes[calls] for calls in sorted(votes) if votes[calls].name not in runs]
        return [*arms, *fewer]

    async def _vote(self, calls: int, full: SweepMethod) -> FrontierArm:
        vote = SweepMethod(name=f"{VOTE}:calls={calls}", method=named(VOTE)(calls=calls))
        settings = replace(
            self.request.settings,
            limits=self._limits(calls),
            out=f"{self.request.settings.out}/{VOTE}-{calls}",
            replay=self.place(full),
        )
        request = replace(self.request, method=vote.method, settings=settings)
        await execute(request, self.watch)
        await self._complete(request)
        return FrontierArm(name=vote.name, run=RunReader(request.settings.out))

    def _request(self, entry: SweepMethod, chosen: Sequence[SweepMethod]) -> Request:
        """Caps are for all methods together: of each is left what the others did not spend."""
        others = self.spent([other for other in chosen if other is not entry])
        calls = self.calls
        if calls is not None and entry.name == VOTE:
            calls = odd(calls)
        if calls is not None and entry.lender is not None:
            calls *= 2  # a critique that is lent is a turn, but no call: it has room of its own
        settings = replace(
            self.request.settings,
            limits=self._limits(calls),
            out=self.place(entry),
            reuse=self._earlier(entry, chosen),
        )
        request = replace(self.request, method=entry.method, settings=settings)
        request = left_for(request, settings, others)
        if entry.lender is None:
            return request
        lender = next(other for other in chosen if other.name == entry.lender)
        folder = self.place(lender)
        return with_player(request, OTHER_CRITIQUE.role, lambda: critiques_of(folder))

    def _earlier(self, entry: SweepMethod, chosen: Sequence[SweepMethod]) -> Sequence[str | Path]:
        """The runs of the methods before this one. An answer that two methods ask for in the same
        words is the same in both, and paid once."""
        settings = self.request.settings
        if settings.pilot or settings.engine != "local":
            return settings.reuse
        places = [self.place(other) for other in chosen[: chosen.index(entry)]]
        there = (place for place in places if open_folder(place).exists("run.json"))
        return (*settings.reuse, *there)

    def _limits(self, calls: int | None) -> Limits:
        limits = self.request.settings.limits
        return limits if calls is None else replace(limits, calls=2 * calls)

    async def _complete(self, request: Request) -> None:
        """Add what scoring needs in addition to the answers, such as a scorer's numbers."""
        if not request.settings.pilot:
            options, services = self.measurement.options, self.measurement.services
            await self.measurement.instrument.complete(
                RunReader(request.settings.out), options, services
            )

    def spent(self, chosen: Sequence[SweepMethod]) -> Spent:
        """Count what these runs have spent so far; without a cap nothing is counted."""
        return spent_within(self.request.settings, map(self.place, chosen))


FILES = ("overcorrection.json", "overcorrection.parquet")
_REFERENCE = "default"  # the model as it is: what it spoils without any method


def methods_of(methods: Sequence[Method | str]) -> list[SweepMethod]:
    """List methods under the names by which they were asked for, each once; one that does not
    repair texts is refused."""
    if not methods:
        raise UserError("--method names no method. Add one; `evenhand methods` lists them.")
    listed = [SweepMethod.of(method) for method in methods]
    for entry in listed:
        refuse_what_repairs_no_text(entry.method)
    return list({entry.name: entry for entry in listed}.values())


async def run_overcorrection(
    methods: Sequence[Method | str],
    options: OverCorrectionOptions,
    models: RunModels,
    settings: RunSettings,
    watch: Watch,
) -> tuple[RunEnd, Sweep | None]:
    """Run methods and count the texts that each made worse; write the files of it.

    Args:
        methods: The methods, as objects or by their names.
        options: The texts.
        models: The models, the scorers and the data.
        settings: The settings of all runs together.
        watch: Receives progress and remarks.

    Returns:
        How the runs ended, and the finding if they did not end early.
    """
    chosen = methods_of(methods)
    measurement = Measurement(
        instrument=OverCorrection(), options=options, services=models.services
    )
    source = await asyncio.to_thread(measurement.items, models.data)
    settings = replace(settings, out=settings.out.rstrip("/"))
    request = models.request(source, chosen[0].method, settings, None)
    series = MethodSeries(request=request, measurement=measurement, watch=watch)
    try:
        ended = await series.run(chosen)
        if ended.early:
            return ended, None
        return ended, await asyncio.to_thread(_counted, series, chosen)
    finally:
        await series.measurement.services.close()


def _counted(series: MethodSeries, chosen: Sequence[SweepMethod]) -> Sweep:
    instrument, settings = series.measurement.instrument, series.request.settings
    runs = series.runs(chosen)
    result = sweep(instrument, runs, _REFERENCE, settings.prices)
    folder, (summary, rows) = open_folder(settings.out), FILES
    folder.replace(summary, to_json(result))
    folder.replace(rows, to_parquet(outcomes(instrument, runs)))
    return result
