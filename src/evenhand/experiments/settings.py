"""The settings of a run, each declared once.

From `RunSettings` come the options of the command line (`cli/options.py`), the keyword
arguments of the Python functions (`RunOptions`), what a `Request` asks for, and the `settings`
of `run.json` (`RunSettings.record`).
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, Required, TypedDict

from pydantic import JsonValue

from evenhand.agents import Limits
from evenhand.core.errors import UserError
from evenhand.core.prices import Prices

Engine = Literal["local", "ray"]
_USUAL_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the command line, Python and the record need to know of a setting."""

    help: str
    flags: tuple[str, ...] | None  # None: no option, the config file has it
    least: float | None
    metavar: str | None
    typed_as: Any  # what is typed on the command line, where that is of another type
    in_python: bool
    recorded: bool


def setting(
    default: Any = MISSING,
    *,
    help: str,
    flags: tuple[str, ...] | None = (),
    least: float | None = None,
    metavar: str | None = None,
    typed_as: Any = None,
    in_python: bool = True,
    recorded: bool = True,
) -> Any:
    """Declare a field of `RunSettings`.

    Args:
        default: The value where none is given. Without it the setting is required.
        help: The help text of the option.
        flags: The names of the option. Empty: `--` and the name of the field. None: no option.
        least: The smallest value that is accepted.
        metavar: What the help shows in place of the value.
        typed_as: The type of the option, where it is not that of the field.
        in_python: Whether the Python functions take it. They have separate functions for the
            others: `forecast` is a pilot.
        recorded: Whether `run.json` lists it under `settings`. Not what only this process needs,
            and not what the record has in a place of its own.

    Returns:
        The dataclass field.
    """
    declared = Setting(
        help=help, flags=flags, least=least, metavar=metavar, typed_as=typed_as,
        in_python=in_python, recorded=recorded,
    )  # fmt: skip
    return field(default=default, metadata={"setting": declared})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How items are sent through a method, and what that may cost."""

    out: str = setting(
        help="Run folder to create or resume: a path or a URL.",
        flags=("--out", "-o"),
        recorded=False,
    )
    dry_run: bool = setting(
        False,
        help="Make no model calls. Print items, declared calls, tokens and cost.",
        in_python=False,
        recorded=False,
    )
    pilot: int | None = setting(
        None,
        help="Ask up to N items with real calls. Forecast calls, tokens, cost and time from them.",
        least=1,
        metavar="N",
        in_python=False,
        recorded=False,
    )
    prices: Prices | None = setting(
        None,
        help="TOML file with prices per model. Default: the prices in the config.",
        typed_as=Path | None,
        recorded=False,
    )
    max_cost: float | None = setting(
        None, help="Stop before the run costs more than this. Needs prices.", least=0
    )
    max_calls: int | None = setting(
        None, help="Stop before the run makes more calls than this.", least=0
    )
    seed: int | None = setting(
        None,
        help="Base seed. The seed of every call is derived from it, so the same value repeats the "
        "run.",
        recorded=False,  # it has its own place
    )
    concurrency: int = setting(64, help="Maximum number of items processed concurrently.", least=1)
    dedupe: bool = setting(False, help="Send identical requests only once.")
    batch: bool = setting(
        False,
        help="Send requests to a batch API, which answers within a day at half the price "
        "(docs/batch.md). Interrupted runs resume.",
    )
    engine: Engine = setting(
        "local", help="Execution engine: this process (local) or a Ray cluster (ray)."
    )
    actors: int | None = setting(
        None, help="Number of Ray processes. Default: one per core.", least=1
    )
    replay: str | None = setting(
        None, help="Replay the recorded responses of this run, without model calls.", recorded=False
    )
    reuse: Sequence[str | Path] = setting(
        (),
        help="Take responses to equal calls from this run, on the same items and seed, and send "
        "only the others. May be repeated.",
        metavar="RUN",
        typed_as=list[str] | None,
        recorded=False,  # a call that was not sent says so itself
    )
    steal_lock: bool = setting(
        False, help="Take over the run folder from a process that hangs.", recorded=False
    )
    require_certified_judges: bool = setting(
        False, help="Start only if every judge has a passing certificate."
    )
    certificates: Path | None = setting(
        None, help="Folder of judge certificates.", flags=None, recorded=False
    )
    limits: Limits = setting(  # it has its own place
        _USUAL_LIMITS,
        help="Limits per item on calls, tokens and seconds.",
        flags=None,
        recorded=False,
    )
    max_tokens: int | None = setting(
        None, help="Maximum tokens per reply. Default: 1024.", least=16, recorded=False
    )  # it is one of the limits
    system: str | None = setting(
        None,
        help="System prompt of the model under test. Agents that write receive it, judges do not.",
        metavar="TEXT|@FILE",
        recorded=False,  # the cast has it
    )
    params: Mapping[str, JsonValue] | None = setting(
        None,
        help="Additional request field for the model under test, such as reasoning_effort=low. "
        "null removes a field. May be repeated.",
        flags=("--param",),
        metavar="NAME=VALUE",
        typed_as=list[str] | None,
        recorded=False,  # the cast has it
    )

    def __post_init__(self) -> None:
        if self.max_tokens is not None:
            object.__setattr__(self, "limits", replace(self.limits, max_tokens=self.max_tokens))

    def record(self) -> dict[str, Any]:
        """Return what `run.json` lists under `settings`: how the run was begun."""
        return {
            entry.name: getattr(self, entry.name)
            for entry, declared in declared_in(type(self))
            if declared.recorded
        }


class OptionalRunOptions(TypedDict, total=False):
    """The keyword arguments of a function that runs something, but for `out`.

    Attributes:
        prices: Price table or a TOML file of one, required for `max_cost`.
        max_cost: Stop before spending more than this.
        max_calls: Stop before making more than this many model calls.
        seed: Base seed from which the seed of every call is derived.
        concurrency: Maximum number of items processed at the same time. Default: 64.
        dedupe: Send identical requests only once.
        batch: Ask in batches, within a day at half the price (docs/batch.md).
        engine: `"local"` or `"ray"`.
        actors: Number of Ray processes. Default: one per core.
        replay: Run folder whose recorded responses answer every call, offline.
        reuse: Run folders on the same items and seed, whose responses answer equal calls; only
            the others are sent.
        steal_lock: Take the run folder from a process that is stuck.
        require_certified_judges: Fail unless every judge has a passing certificate.
        certificates: Folder to look for judges' certificates in.
        limits: Limits of an item on calls, tokens and seconds.
        max_tokens: Maximum tokens per reply. Default: 1024.
        system: System prompt of the model under test (docs/counterfactual.md).
        params: Further fields of every request to a model that is given by its name. An `Endpoint`
            takes its own.
    """

    prices: Prices | str | Path | None
    max_cost: float | None
    max_calls: int | None
    seed: int | None
    concurrency: int
    dedupe: bool
    batch: bool
    engine: Engine
    actors: int | None
    replay: str | Path | None
    reuse: Sequence[str | Path]
    steal_lock: bool
    require_certified_judges: bool
    certificates: str | Path | None
    limits: Limits
    max_tokens: int | None
    system: str | None
    params: Mapping[str, JsonValue] | None


class RunOptions(OptionalRunOptions):
    """The keyword arguments that every Python function takes which runs something.

    Attributes:
        out: Run folder, as a path or URL. A run that was interrupted is resumed.
    """

    out: Required[str | Path]


def declared_in(kind: type[RunSettings]) -> Iterator[tuple[Field[Any], Setting]]:
    """Yield each field with what was declared of it."""
    for entry in fields(kind):
        yield entry, entry.metadata["setting"]


def python_parameters(kind: type[RunSettings] = RunSettings) -> list[inspect.Parameter]:
    """List the keyword arguments that a Python function takes for these settings."""
    return [
        inspect.Parameter(
            entry.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if entry.default is MISSING else entry.default,
            annotation=RunOptions.__annotations__.get(entry.name, entry.type),
        )
        for entry, declared in declared_in(kind)
        if declared.in_python
    ]


def show_settings(*functions: Callable[..., Any]) -> None:
    """Show every setting in the signature of functions that end in `**settings`, for editors that
    ask the running program, such as notebooks."""
    for function in functions:
        signature = inspect.signature(function)
        own = [entry for entry in signature.parameters.values()
               if entry.kind is not entry.VAR_KEYWORD]  # fmt: skip
        settings = [
            entry for entry in python_parameters() if entry.name not in signature.parameters
        ]
        shown = signature.replace(parameters=[*own, *settings])
        function.__signature__ = shown  # type: ignore[attr-defined]


def settings_from(
    values: Mapping[str, Any],
    kind: type[RunSettings] = RunSettings,
    *,
    read: Mapping[str, Callable[[Any], Any]],
) -> RunSettings:
    """Make settings from values by name.

    Args:
        values: The values that were given.
        kind: The settings.
        read: What turns a given value into that of the field, for the fields that need it.

    Returns:
        The settings, with defaults for the others.

    Raises:
        UserError: If a name is not a setting, or a required one is missing.
    """
    known = {entry.name: entry for entry, declared in declared_in(kind) if declared.in_python}
    unknown = next((name for name in values if name not in known), None)
    if unknown is not None:
        raise UserError(
            f"unknown run setting {unknown!r}. Available: {', '.join(known)}. Pass "
            "benchmark options as options={…}"
        )
    missing = next((name for name, entry in known.items()
                    if entry.default is MISSING and name not in values), None)  # fmt: skip
    if missing is not None:
        raise UserError(f"the setting {missing!r} is required")
    return kind(**{name: read[name](value) if name in read else value
                   for name, value in values.items()})  # fmt: skip
