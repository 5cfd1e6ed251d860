"""The options that several commands share, such as those of a run, and groups of commands."""

import functools
import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import MISSING, Field, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
import typer
from pydantic import JsonValue
from typer.core import TyperGroup

from evenhand.api.configured import request_of
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.experiments.config import Config
from evenhand.experiments.request import Request
from evenhand.experiments.settings import RunSettings, Setting, declared_in
from evenhand.methods import Method
from evenhand.methods.build import build_method
from evenhand.runs.runners import Source

BaseUrl = Annotated[
    str | None,
    typer.Option(help="Call the OpenAI-compatible endpoint at this URL.  [env: EVENHAND_BASE_URL]"),
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="Call this model of the endpoint. Optional if the endpoint serves only one. Or "
        "litellm:PROVIDER/MODEL, inspect:PROVIDER/MODEL.  [env: EVENHAND_MODEL]",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="Read this config file. Default: evenhand.toml, if it exists."),
]
PriceFile = Annotated[
    Path | None,
    typer.Option(
        "--prices", help="Read prices from this TOML file. Default: the prices in the config."
    ),
]
CertificateFolder = Annotated[
    Path | None,
    typer.Option(
        "--certificates",
        help="Look for judge certificates in this folder. Default: the folder in the config.",
    ),
]
MethodName = Annotated[
    str,
    typer.Option("--method", help="Answer with this method. `evenhand methods` lists all methods."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Set a setting of the method, as name=value. May be repeated."),
]
WordingName = Annotated[
    str | None,
    typer.Option(
        "--wording",
        help="Choose the prompts. paper: the intent of the paper's prompts (methods mabrf, "
        "stardtox). 1 to 3: a prompt paraphrase (method default). Default: ours.",
    ),
]
Full = Annotated[bool, typer.Option("--full", help="Show every estimate, group and table.")]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param", metavar="NAME=VALUE", help="Add a field to every request. May be repeated."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
LabelledFile = Annotated[
    Path,
    typer.Argument(
        metavar="LABELED",
        help="Read labeled texts, one per row, from this .jsonl or .csv file.",
    ),
]
ScorerName = Annotated[
    str,
    typer.Option(help="Use a scorer that `evenhand scorers list` shows, or KIND=URL[#MODEL]."),
]
ClusterColumn = Annotated[
    str | None,
    typer.Option(help="Count one text per cluster, from this column, such as template or author."),
]
TextColumn = Annotated[str, typer.Option(help="Read the text from this column.")]
LabelColumn = Annotated[
    str, typer.Option(help="Read the label from this column: true, yes or 1 means harmful.")
]
Attribute = Annotated[str, typer.Option(help="Use this score of the scorer.")]


def further_params(typed: Sequence[str]) -> dict[str, JsonValue]:
    """Return the fields of --param: numbers, true, false, null and JSON as such, anything else
    as text."""
    params: dict[str, JsonValue] = {}
    for each in typed:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise UserError(f"--param {each}: write it as NAME=VALUE")
        try:
            params[name] = orjson.loads(value)
        except orjson.JSONDecodeError:
            params[name] = value
    return params


def system_prompt(text: str | None) -> str | None:
    """Return the system prompt of --system: its text, or the text of the file after @."""
    if text is None:
        return None
    words = text
    if text.startswith("@"):
        try:
            words = Path(text[1:]).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"--system {text}: the file cannot be read: {error}") from None
    if not words.strip():
        raise UserError(f"--system {text}: the system prompt is empty".replace("  ", " "))
    return words.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommand:
    """The options of a run: its settings, its method, and its models."""

    settings: RunSettings  # price and system prompt files are read on demand
    prices: Path | None = None
    method: MethodName = "default"
    wording: WordingName = None
    set_: Settings = None
    base_url: BaseUrl = None
    model: ModelName = None
    config: ConfigFile = None
    json: Json = False

    @property
    def out(self) -> str:
        return self.settings.out

    def into(self, folder: str) -> "RunCommand":
        """Return the same command with another run folder."""
        return replace(self, settings=replace(self.settings, out=folder))

    def load(self) -> Config:
        """Load the config; options replace its values."""
        return configuration.load(
            self.config,
            self.base_url,
            self.model,
            prices=self.prices,
            system=system_prompt(self.settings.system),
            params=self.settings.params,
        )

    def built_method(self) -> Method:
        """Build the method of --method, --set and --wording."""
        return build_method(self.method, self.set_ or (), self.wording)

    def run_settings(self) -> RunSettings:
        """Return the settings of the run, with the words of the system prompt."""
        return replace(self.settings, system=system_prompt(self.settings.system))

    def request(
        self, source: Source, method: Method | None = None, config: Config | None = None
    ) -> Request:
        """Make the request for these items.

        Args:
            source: The items.
            method: The method. Default: the method of the options.
            config: The config. Default: the result of `load`.

        Returns:
            The request.
        """
        return request_of(
            config or self.load(), source, method or self.built_method(), self.run_settings()
        )


_BEFORE = ("method", "wording", "set_")  # in the help, the others come after the settings
_AFTER = ("base_url", "model", "config", "json")


def with_run_options(
    command: Callable[..., None],
    *,
    without: Collection[str] = (),
    only: Collection[str] | None = None,
    kind: type[RunSettings] = RunSettings,
    **defaults: str,
) -> Callable[..., None]:
    """Make a command that takes the settings of a run as options, after its own.

    Args:
        command: A function whose first argument is a `RunCommand`.
        without: The options that this command does not have. They keep their defaults.
        only: The options that this command has. Default: all.
        kind: The settings.
        defaults: Other defaults of this command by name, such as of `out` or `method`.

    Returns:
        The command, for typer.
    """
    own = list(inspect.signature(command).parameters.values())[1:]
    taken = {*without, *(parameter.name for parameter in own)}
    shared = [
        entry.replace(default=defaults[entry.name]) if entry.name in defaults else entry
        for entry in _in_order(kind)
        if entry.name not in taken and (only is None or entry.name in only)
    ]

    @functools.wraps(command)
    def whole(**values: Any) -> None:
        typed = {entry.name: values.pop(entry.name) for entry in shared}
        command(_typed(typed, kind), **values)

    keyword_only = [entry.replace(kind=inspect.Parameter.KEYWORD_ONLY) for entry in own]
    whole.__signature__ = inspect.Signature([*keyword_only, *shared])  # type: ignore[attr-defined]
    return whole


def _typed(typed: dict[str, Any], kind: type[RunSettings]) -> RunCommand:
    prices = typed.pop("prices", None)
    names = [entry.name for entry, _ in declared_in(kind)]
    settings = {name: typed.pop(name) for name in names if name in typed}
    settings["params"] = further_params(settings.get("params") or ()) or None
    settings["reuse"] = tuple(settings.get("reuse") or ())
    return RunCommand(settings=kind(**{"out": "", **settings}), prices=prices, **typed)


def _in_order(kind: type[RunSettings]) -> list[inspect.Parameter]:
    """Return all options in the order of the help: folder and method first, model last."""
    first, *settings = [option_of(entry, declared) for entry, declared in declared_in(kind)
                        if declared.flags is not None]  # fmt: skip
    others = {entry.name: _plain_option(entry) for entry in fields(RunCommand)}
    before, after = ([others[name] for name in names] for names in (_BEFORE, _AFTER))
    return [first, *before, *settings, *after]


def option_of(entry: "Field[Any]", declared: Setting) -> inspect.Parameter:
    """Make the option of a command from a field of the settings."""
    flags = declared.flags or (f"--{entry.name.replace('_', '-')}",)
    option = typer.Option(*flags, help=declared.help, min=declared.least, metavar=declared.metavar)
    return inspect.Parameter(
        entry.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if entry.default is MISSING else entry.default,
        annotation=Annotated[declared.typed_as or entry.type, option],
    )


def _plain_option(entry: "Field[Any]") -> inspect.Parameter:
    return inspect.Parameter(
        entry.name, inspect.Parameter.KEYWORD_ONLY, default=entry.default, annotation=entry.type
    )


PresetName = Annotated[
    Literal["templates", "all", "stardtox", "mabrf"] | None,
    typer.Option(
        "--preset",
        help="Choose a sample. templates: an aligned and a non-aligned block of each of the 343 "
        "templates (2,728 items). all: 58,492 items. stardtox: 100 x 11 items at random. mabrf: "
        "the 110 items of that paper.",
    ),
]
PerCategory = Annotated[
    int | None, typer.Option(min=4, help="Set the number of items per category, in whole blocks.")
]
SampleSeed = Annotated[
    int | None, typer.Option(help="Set the random seed for the sample and the option order.")
]
DrawSeed = Annotated[int, typer.Option("--sample-seed", help="Set the random seed for sampling.")]


Sample = Annotated[
    list[str] | None,
    typer.Option(
        "--sample",
        help="Set an option of the benchmark as NAME=VALUE, such as questions=50. May be repeated.",
    ),
]


def assigned(option: str, assignments: Sequence[str]) -> dict[str, str]:
    """Read values of the form NAME=VALUE."""
    values = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise UserError(f"{option} {assignment}: write it as NAME=VALUE")
        values[name.strip()] = value.strip()
    return values


def names_in(text: str) -> list[str]:
    """Read names that are separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def key_in(variable: str | None) -> str | None:
    """Read the key from the variable that --key-env names, if any."""
    key = configuration.secret(variable)
    if variable and not key:
        raise UserError(f"--key-env {variable}: this variable is not set, or is empty")
    return key


def group_for(unsaid: str, *, bare: bool = False) -> type[TyperGroup]:
    """Make a group in which that command is optional: `pack RUN…` means `runs pack make RUN…`.

    With `bare`, the name of the group alone also means that command; otherwise it shows the help.
    """

    class OrCommand(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            names = {*self.commands, *self.get_help_option_names(ctx)}
            explicit = args[0] in names if args else not bare
            return super().parse_args(ctx, args if explicit else [unsaid, *args])

    return OrCommand
