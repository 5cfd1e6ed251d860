"""Trainings in a thread, so that others go on; and RLDF (paper 002) from topics to measured
weights, with a stop where the next step would build on nothing."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import orjson

from evenhand.core.errors import UserError
from evenhand.experiments.debating import (
    ask_topics,
    check_topics,
    run_debates,
    types_named,
    write_once,
)
from evenhand.experiments.measuring import (
    RunModels,
    concluded,
    draw_sets,
    measure,
    measure_sets,
    prepared,
)
from evenhand.experiments.request import Watch, left_for, spent_within, within
from evenhand.experiments.running import RunEnd, execute, is_done
from evenhand.experiments.settings import RunSettings
from evenhand.findings.audit import Audit
from evenhand.findings.comparison import Comparison
from evenhand.findings.display import Remark
from evenhand.instruments import instrument_named
from evenhand.instruments.likelihood_sets import compare_sets, usual_sets
from evenhand.methods.build import build_method
from evenhand.runs.runners import ItemList, JsonlFile, StopSignal
from evenhand.runs.store import RunReader
from evenhand.runs.store.spending import Spent
from evenhand.training import cards, launch
from evenhand.training.debates.building import from_statements
from evenhand.training.debates.dataset import LOW
from evenhand.training.debates.debate import Debate, statements
from evenhand.training.debates.findings import DebateReport, debates
from evenhand.training.debates.pairs import Pairing, Split
from evenhand.training.debates.topics import DebateTopics, bias_types
from evenhand.training.events import Note, Tell, TrainingStep, silent
from evenhand.training.folders import write
from evenhand.training.launch import TrainingJob
from evenhand.training.recipes import Recipe
from evenhand.training.record import NOTHING_TRAINED
from evenhand.views.files import plain


class _TrainingStopped(Exception):
    """Ends a training between two steps; it is resumed from its last checkpoint."""


async def train(
    job: TrainingJob,
    *,
    processes: int = 1,
    tell: Tell = silent,
    stop: StopSignal | None = None,
) -> dict[str, Any] | None:
    """Train in a thread. A caller who is cancelled waits until it has stopped: two trainings in a
    folder would write over each other.

    Args:
        job: The stage, the recipe and the folders.
        processes: How many processes train together.
        tell: Receives the events of the training.
        stop: Ends the training between two steps when somebody sets it.

    Returns:
        The record of the training; None if it was stopped.
    """
    cancelled = threading.Event()

    def stopped() -> bool:
        return cancelled.is_set() or (stop is not None and stop.soft)

    def told(event: TrainingStep | Note) -> None:
        if stopped():
            raise _TrainingStopped
        tell(event)

    running = asyncio.ensure_future(asyncio.to_thread(launch.train, job, processes, told, stopped))
    try:
        return await asyncio.shield(running)
    except _TrainingStopped:
        return None
    except asyncio.CancelledError:
        cancelled.set()
        await asyncio.gather(running, return_exceptions=True)
        raise


# -- RLDF ------------------------------------------------------------------------------------------

_LOOK_FIRST = 20  # our choice: debates after which the referee is looked at, before the others
_PER_TOPIC = 10  # as `train pairs from-debates` has it
_RECIPE_FILE = "rldf.json"
_GATES = ("debates.none", "debates.referee")
Reinforcement = Literal["ppo", "rloo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RldfRecipe:
    """What RLDF is run with. The defaults are the paper's, but for the number of topics."""

    weights: Path
    pairs: Path | None = None  # None: of debates, which the recipe runs
    types: tuple[str, ...] | None = None
    count: int = 40  # paper 4.1: 2000 topics of each type
    rounds: int = 5  # paper 4.1: "optimal number of debate rounds is 5"
    rl: Reinforcement = "ppo"  # paper 3.2
    full: bool = False
    settings: tuple[str, ...] = ()  # STAGE.NAME=VALUE
    sets: tuple[str, ...] | None = None  # that the weights are measured on; None: the usual ones
    sample: int = 1_600

    @property
    def stages(self) -> tuple[str, ...]:
        return "sft", "reward", self.rl

    def recipes(self, low: bool, seed: int | None) -> dict[str, Recipe]:
        """The recipe of each stage.

        Args:
            low: Whether the pairs come with low statements that are in none of them.
            seed: The seed of the run, which is that of the trainings too.

        Returns:
            The recipes by stage: SFT on all low statements and a reward loss without a margin, as
            the paper has them, where the settings say nothing else.
        """
        paper = {"sft": [f"all_low={low}"], "reward": ["margin=false"], self.rl: []}
        common = [] if seed is None else [f"seed={seed}"]
        own: dict[str, list[str]] = {stage: [] for stage in self.stages}
        for setting in self.settings:
            stage, dot, assignment = setting.partition(".")
            if not dot or stage not in own:
                raise UserError(
                    f"--set {setting}: write it as STAGE.NAME=VALUE, with a stage of "
                    f"{', '.join(own)}"
                )
            own[stage].append(assignment)
        return {
            stage: launch.recipe_of(
                stage, full=self.full, assignments=[*paper[stage], *common, *own[stage]]
            )
            for stage in self.stages
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RldfResult:
    """How far RLDF came. `stopped` is the gate that was not passed; those that were overridden are
    in `forced`. Changes of each stage are against the weights it began with."""

    ended: RunEnd = field(default_factory=RunEnd)
    stopped: Remark | None = None
    forced: tuple[Remark, ...] = ()
    debates: DebateReport | None = None
    outcomes: Mapping[str, str] = field(default_factory=dict)  # stage -> outcome of the training
    audit: Audit | None = None
    comparisons: Mapping[str, tuple[Comparison, ...]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, for JSON."""
        return {
            "stopped": self.stopped,
            "forced": self.forced,
            "debates": self.debates and self.debates.to_dict(),
            "outcomes": self.outcomes,
            "audit": self.audit and self.audit.to_dict(),
            "comparisons": {
                name: [comparison.to_dict() for comparison in comparisons]
                for name, comparisons in self.comparisons.items()
            },
        }


class _Ended(Exception):
    """Leaves the loop: a gate, a cap or a signal."""


@dataclass(slots=True, kw_only=True)
class Rldf:
    """One run of RLDF in its folder. Each step is skipped where its result is there."""

    recipe: RldfRecipe
    models: RunModels
    settings: RunSettings
    watch: Watch
    force: bool = False
    tell: Tell = silent
    result: RldfResult = field(default_factory=RldfResult)

    async def run(self) -> RldfResult:
        """Go on from where the folder is: debates, pairs, trainings, measurements.

        Returns:
            The result: how far it came and why it stopped.
        """
        self.recipe.recipes(low=True, seed=self.settings.seed)  # refuses before the first call
        self._draw(None)
        await asyncio.to_thread(self._begin)
        try:
            pairs = self.recipe.pairs or await self._pairs()
            await self._trained(pairs)
            await self._measured(pairs)
        except _Ended:
            pass
        return self.result

    @property
    def _out(self) -> Path:
        return Path(self.settings.out)

    def _begin(self) -> None:
        """Refuse a folder of another recipe: its topics and pairs would be taken for these."""
        recipe = {**asdict(self.recipe), "seed": self.settings.seed}
        recipe = orjson.loads(orjson.dumps(recipe, default=str))
        file = self._out / _RECIPE_FILE
        if not file.exists():
            self._out.mkdir(parents=True, exist_ok=True)
            write(file, orjson.dumps(recipe, option=orjson.OPT_INDENT_2).decode() + "\n")
            return
        there = orjson.loads(file.read_bytes())
        differing = [name for name, value in recipe.items() if there.get(name) != value]
        if differing:
            name = differing[0]
            raise UserError(
                f"{self._out} was begun with another {name}: {there.get(name)}, not "
                f"{recipe[name]}. Choose another folder with --out."
            )

    def _gate(self, remark: Remark | None) -> None:
        if remark is None or any(remark.code == gate.code for gate in self.result.forced):
            return
        if not self.force:
            self.result = replace(self.result, stopped=remark)
            raise _Ended
        self.watch.note(remark)
        self.result = replace(self.result, forced=(*self.result.forced, remark))

    def _go_on(self, ended: RunEnd) -> None:
        self.result = replace(self.result, ended=ended)
        if ended.early:
            raise _Ended

    # -- topics, debates, pairs --------------------------------------------------------------------

    async def _pairs(self) -> Path:
        report = await self._debates(await self._topics())
        self.result = replace(self.result, debates=report)
        folder = self._out / "pairs"

        def paired() -> None:
            every = statements(RunReader(f"{self.settings.out}/debate"))
            write_once(folder, from_statements(every, Pairing(), Split(per_topic=_PER_TOPIC)))

        self.watch.note("pairs")
        await asyncio.to_thread(paired)
        return folder

    async def _topics(self) -> Path:
        file = self._out / "topics.jsonl"
        if file.exists():
            return file
        kinds = types_named(self.recipe.types, bias_types())
        settings = within(self.settings, "topics.runs")
        request = self.models.request(ItemList([]), DebateTopics(), settings, None)
        self.watch.note("topics")
        topics = await ask_topics(request, kinds, self.recipe.count, self.watch)
        self._go_on(topics.ended)
        for name in topics.short():
            self.watch.note(f"{name}: {topics.numbers()[name]['topics']} of {topics.count} topics")
        await asyncio.to_thread(topics.write, kinds, file)
        return file

    async def _debates(self, topics: Path) -> DebateReport | None:
        """Look at the referee after a few debates, before the rest is paid for."""
        # Ours: the second referee, in the opposite order, for the agreement.
        method = Debate(rounds=self.recipe.rounds, referees=2, style="paper")
        settings = within(self.settings, "debate")
        request = self.models.request(JsonlFile(topics), method, settings, None)
        check_topics(request, method)
        request = left_for(request, self.settings, self._spent_on_topics())
        self.watch.note("debates")
        if not await is_done(request):
            few = replace(request, settings=replace(request.settings, pilot=_LOOK_FIRST))
            self._go_on(await execute(few, self.watch))
            self._gate(_referee(debates(RunReader(settings.out))))
        debated = await run_debates(request, self.watch)
        self._go_on(debated.ended)
        self.result = replace(self.result, debates=debated.report)
        self._gate(_referee(debated.report) if debated.report else None)
        return debated.report

    def _spent_on_topics(self) -> Spent:
        return spent_within(self.settings, map(str, self._out.glob("topics.runs/*")))

    # -- trainings ---------------------------------------------------------------------------------

    async def _trained(self, pairs: Path) -> None:
        recipes = self.recipe.recipes(_has_low(pairs), self.settings.seed)
        sft, reward = self._out / "sft" / "model", self._out / "reward" / "model"
        for stage, recipe in recipes.items():
            if stage == self.recipe.rl:
                await self._audited(pairs, reward)
            job = TrainingJob(
                stage=stage,
                recipe=recipe,
                model=self.recipe.weights if stage == "sft" else sft,
                pairs=pairs,
                config="default",
                out=self._out / stage,
                reward=reward if stage == self.recipe.rl else None,
                force=self.force and stage == self.recipe.rl,
            )
            self.watch.note(stage)
            record = await train(job, tell=self.tell, stop=self.watch.stop())
            self._go_on(RunEnd(stopped=record is None))
            outcome = str((record or {}).get("outcome"))
            self.result = replace(self.result, outcomes={**self.result.outcomes, stage: outcome})
            if outcome in NOTHING_TRAINED:
                self.result = replace(
                    self.result, stopped=Remark("rldf.not_trained", stage=stage, outcome=outcome)
                )
                raise _Ended

    async def _audited(self, pairs: Path, reward: Path) -> None:
        self.watch.note("audit of the reward model")
        measurement, request = prepared(
            instrument_named("reward"),
            {"weights": reward, "pairs": pairs},
            build_method("default"),
            self.models,
            RunSettings(out=f"{self.settings.out}/reward/audit"),
        )
        result = await measure(measurement, request, self.watch)
        self._go_on(result.ended)
        assert result.report is not None  # the audit is whole
        audit = concluded(measurement.instrument, measurement.options, result.report)
        self.result = replace(self.result, audit=audit)
        self._gate(None if audit.state == "pass" else Remark("rldf.reward", state=audit.state))

    # -- measurements ------------------------------------------------------------------------------

    def _draw(self, pairs: Path | None) -> Mapping[str, Any]:
        names = self.recipe.sets if self.recipe.sets is not None else usual_sets()
        values = {"sample": self.recipe.sample, "unseen": pairs}
        return draw_sets(names, self.models.data, values)

    async def _measured(self, pairs: Path) -> None:
        """The weights before and after, by log-probability: no judge decides here."""
        from evenhand.training.local_likelihood import LocalLikelihood  # noqa: PLC0415 torch

        sources = self._draw(pairs)
        runs: dict[str, dict[str, RunReader]] = {}
        for name in ("base", "sft", self.recipe.rl):
            self.watch.note(f"log-probability benchmarks: {name}")
            weights = self.recipe.weights if name == "base" else self._out / name / "model"
            folders = {each: f"{self.settings.out}/likelihood/{name}/{each}" for each in sources}
            await measure_sets(LocalLikelihood(weights), sources, folders, self.watch)
            runs[name] = {each: RunReader(folder) for each, folder in folders.items()}
        for name in ("sft", self.recipe.rl):
            comparisons = await asyncio.to_thread(compare_sets, runs["base"], runs[name])
            await asyncio.to_thread(self._carded, name, comparisons)
            self.result = replace(
                self.result,
                comparisons={**self.result.comparisons, name: tuple(comparisons)},
            )

    def _carded(self, name: str, comparisons: Sequence[Comparison]) -> None:
        file = self._out / name / "likelihood.json"
        sets = {"sets": [plain(comparison.to_dict()) for comparison in comparisons]}
        write(file, orjson.dumps(sets, option=orjson.OPT_NON_STR_KEYS).decode() + "\n")
        cards.renew(self._out / name / "model", [file])


def _has_low(pairs: Path) -> bool:
    return any(pairs.glob(f"{LOW}-*.parquet"))


def _referee(report: DebateReport) -> Remark | None:
    return next((remark for remark in report.problems if remark.code in _GATES), None)
