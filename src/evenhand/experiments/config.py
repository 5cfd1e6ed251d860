"""The reader of the config file and, but for `environment`, of the environment.

# evenhand.toml
[models.default]
base_url = "http://127.0.0.1:8080/v1"
model = "smollm2"
system = "You are the assistant of a shop."   # see docs/counterfactual.md
params = { reasoning_effort = "low" }   # further fields of every request, see docs/connect.md

[models.judge]
base_url = "https://gateway.example/v1"
model = "a-larger-model"
api_key_env = "GATEWAY_API_KEY"
api = "responses"                        # for models that have no other; see docs/connect.md

[models.sonnet]
model = "litellm:anthropic/claude-sonnet-4-5"

[roles]
bias_evaluator = "judge"
scorer = "wordlist"

[models.agent]                           # an app or agent of yours, see docs/agents.md
model = "http://127.0.0.1:9000/decide"   # or command:PROGRAM, or python:MODULE:FUNCTION

[scorers.moderation]                     # see docs/scorers.md
kind = "openai_moderation"

[limits]
seconds = 600

[search]                                 # off without it; see docs/mitigate-files.md
engine = "mediawiki"

[judges]                                 # see docs/judge-audit.md
certificates = "certificates"

[harms.tenants]                          # see docs/harm-policies.md
policy_file = "tenants.md"
examples = "tenants.jsonl"

[prices]                                 # or a file of its own, by --prices FILE
currency = "USD"

[prices.models."a-larger-model"]
per_million_prompt_tokens = 2.50
per_million_completion_tokens = 10.00
"""

import asyncio
import os
import tomllib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from evenhand.agents import Agent, Cast, Limits
from evenhand.agents.tools import search as searching
from evenhand.agents.tools.search import SearchEngine, SearchModel
from evenhand.agents.tools.search.base import MOST_HITS, ROLE
from evenhand.agents.tools.search.engines import BRAVE, SearchSettings
from evenhand.core import environment, registry
from evenhand.core.errors import UserError, choices_for
from evenhand.core.prices import BATCH_FACTOR, Price, Prices
from evenhand.instruments._contract import DataFolder
from evenhand.instruments.harm import HarmConfig, HarmName, OwnHarm, certified_judge, own_harm
from evenhand.models import Endpoint
from evenhand.models.apps import STARTS_PROGRAMS
from evenhand.models.base import ChatModel
from evenhand.models.batch import BatchForm, VllmFiles
from evenhand.models.endpoint import Api, RemoteModel
from evenhand.models.keys import (
    SERVICES,
    SHORTEST,
    KeyPlace,
    check_hosts,
    check_places,
    key_place,
    origin,
)
from evenhand.models.libraries import library_of, open_by_name
from evenhand.models.replay import nobody
from evenhand.runs.runners.replay import critiques_of
from evenhand.scorers import Scorer, ScorerModel
from evenhand.scorers.kinds import BUILT_IN, ChatScorerKind, ScorerConfig, build, spoken
from evenhand.scorers.support import ROLE as SUPPORT
from evenhand.scorers.support import SupportModel

DEFAULT_URL = "http://127.0.0.1:8080/v1"
DEFAULT_FILE = Path("evenhand.toml")
SCORERS: Mapping[str, Callable[[], Scorer]] = BUILT_IN
LENDER = "run:"  # a run whose critiques the placebo critic takes (`critique=other`)
HARM = "harm:"  # a custom harm policy, as a scorer

_Positive = Annotated[float, Field(gt=0)]
_Money = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_File = TypeVar("_File", bound=BaseModel)


class ModelConfig(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    base_url: str = DEFAULT_URL
    model: str | None = None  # None: the only model that the endpoint has
    system: Annotated[str, Field(min_length=1)] | None = None  # given to agents that write
    params: dict[str, JsonValue] = {}  # further fields of every request
    api_key_env: str | None = None  # None: EVENHAND_API_KEY, at the default model's origin alone
    batch: BatchForm | None = None  # of --batch; None: the address tells. vllm: files alone
    attempt_timeout: _Positive = 120.0
    max_wait: _Positive = 60.0
    api: Api = "chat"

    @model_validator(mode="after")
    def _has_one_door(self) -> Self:
        if self.library and self.api != "chat":
            raise PydanticCustomError("door", "api is for an endpoint, and not for a library")
        if self.library and self.batch is not None:
            raise PydanticCustomError("door", "batch is for an endpoint, and not for a library")
        return self

    @property
    def library(self) -> str:
        """The package that asks the model; empty for an endpoint."""
        return library_of(self.model)

    @property
    def named_url(self) -> str | None:
        """The address, where there is one: a library knows those of its providers, and the name of
        an HTTP app is its address."""
        if self.library in ("http", "https"):
            return self.model
        return self.base_url if not self.library or "base_url" in self.model_fields_set else None

    @property
    def address(self) -> str:
        """What may be shown of the URL: some write their key behind the question mark."""
        return (self.named_url or self.library).partition("?")[0]

    def key_place(self, default: Mapping[str, str]) -> KeyPlace | None:
        if self.named_url:
            return key_place(self.named_url, self.api_key_env, default)
        if self.api_key_env in SERVICES:
            raise UserError(
                f"{self.model}: leave api_key_env out: {self.library} itself reads "
                f"{self.api_key_env} for the service that it belongs to"
            )
        where = f"the provider, through {self.library}"
        return KeyPlace(self.api_key_env, where) if self.api_key_env else None

    def with_model(self, model: str) -> "ModelConfig":
        """The config with another model. One that a library asks has an address of its own."""
        moved = self
        if library_of(model) and not self.library:
            kept = self.model_fields_set - {"base_url", "api_key_env", "api", "batch"}
            moved = ModelConfig(**{name: getattr(self, name) for name in kept})
        return moved.model_copy(update={"model": model})


def _known_engine(name: str) -> str:
    if name not in registry.names("searches"):
        raise ValueError(f"none of: {', '.join(registry.names('searches'))}")
    return name


class SearchConfig(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    engine: Annotated[str, AfterValidator(_known_engine)]
    url: str | None = None  # searxng: of the server; mediawiki: of its api.php
    path: Path | None = None  # corpus: a folder or a JSONL file
    api_key_env: str | None = None  # None: the variable that the engine's key usually has
    pages: bool = True  # read the pages of hits that are only snippets
    most: Annotated[int, Field(ge=1, le=MOST_HITS)] = MOST_HITS

    def key_place(self) -> KeyPlace | None:
        engine_url = {"brave": BRAVE}.get(self.engine, "")
        return key_place(self.url or engine_url, self.api_key_env, {origin(BRAVE): "BRAVE_API_KEY"})


class PriceConfig(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    per_million_prompt_tokens: _Money
    per_million_completion_tokens: _Money
    batch_factor: _Money = BATCH_FACTOR  # of the price, where a provider's batch answers


class PriceFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    currency: Annotated[str, Field(min_length=1, max_length=12)] = "USD"
    models: dict[str, PriceConfig]

    def prices(self) -> Prices:
        by_model = {name: Price(**price.model_dump()) for name, price in self.models.items()}
        return Prices(by_model, self.currency)


class JudgesConfig(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    certificates: Path  # a folder of what `evenhand audit judge` wrote


class Config(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    models: dict[str, ModelConfig] = {}
    roles: dict[str, str] = {}  # role -> a name in models, a scorer's name, or run:FOLDER
    scorers: dict[str, ScorerConfig] = {}
    limits: Limits = Limits()
    search: SearchConfig | None = None  # None: nothing is searched, nothing leaves
    judges: JudgesConfig | None = None
    harms: dict[HarmName, HarmConfig] = {}
    prices: PriceFile | None = None

    @property
    def certificates(self) -> Path | None:
        return self.judges.certificates if self.judges else None

    @property
    def price_table(self) -> Prices | None:
        return self.prices.prices() if self.prices else None

    def default_model(self) -> ModelConfig:
        return self.models.get("default", ModelConfig())

    def only(self, model: ModelConfig) -> "Config":
        """Return the config with this model as the only one, for every role."""
        update = {"models": {"default": model}, "roles": {}, "search": None}
        return self.model_copy(update=update)

    def model_named(self, name: str) -> ModelConfig:
        """Return the model of this name; a `UserError` lists those that there are."""
        if name not in self.models:
            raise UserError(
                f"--judge: the config has no model {name!r}. "
                f"{choices_for(name, sorted(self.models))}"
            )
        return self.models[name]

    def with_default(self, name: str) -> "Config":
        """Return the config with this model of it as the only one, which plays by default."""
        return self.model_copy(update={"models": {"default": self.model_named(name)}})

    def systems(self) -> dict[str, str]:
        """The system prompt of the default model and of each role: "" for none."""
        played = {"default": self.default_model(),
                  **{role: self.models.get(name) for role, name in self.roles.items()}}  # fmt: skip
        return {role: (model and model.system) or "" for role, model in played.items()}

    def default_key(self) -> dict[str, str]:
        """The default model's origin, and the variable whose key goes there and nowhere else."""
        default = self.default_model()
        if not default.named_url:
            return {}
        return {origin(default.named_url): default.api_key_env or "EVENHAND_API_KEY"}

    def key_places(self) -> dict[str, KeyPlace]:
        """Where each key goes, by what it is for."""
        default = self.default_key()
        destinations = {
            f"models.{name}": model.key_place(default) for name, model in self.models.items()
        }
        destinations |= {
            f"scorers.{name}": scorer.key_place(default) for name, scorer in self.scorers.items()
        }
        if self.search is not None:
            destinations["search"] = self.search.key_place()
        return {
            name: destination
            for name, destination in destinations.items()
            if destination is not None
        }


def load(
    path: Path | None,
    base_url: str | None,
    model: str | None,
    *,
    prices: Path | None = None,
    system: str | None = None,
    params: Mapping[str, object] | None = None,
) -> Config:
    """Load the config file; environment variables override it, and arguments override both.

    Args:
        path: The config file; None for the default one in the current folder, if it exists.
        base_url: The endpoint of the default model.
        model: The name of the default model.
        prices: A file of prices that replaces those of the config.
        system: The system prompt of the default model.
        params: Request parameters of the default model, added to those of the config.

    Returns:
        The config.

    Raises:
        UserError: If the file cannot be read, or sends a key to a place it may not go to.
    """
    config = _read_config(path)
    named = model or os.environ.get("EVENHAND_MODEL")
    default = config.default_model()
    default = default.with_model(named) if named else default
    # The variable says where the endpoint is, and a library's model is not there.
    url = base_url or (None if default.library else environment.base_url())
    changes = {"base_url": url, "system": system}
    default = _moved(default, {k: v for k, v in changes.items() if v})
    if params:
        default = default.model_copy(update={"params": {**default.params, **params}})
    config = config.model_copy(
        update={
            "models": _with_keys({**config.models, "default": default}),
            "prices": _read(prices, PriceFile, "price") if prices else config.prices,
        }
    )
    _check_names(config)
    default_file = None if path else str(DEFAULT_FILE)
    check_places(config.key_places(), default_file, url or "", os.environ)
    if default_file:
        named_urls = [m.named_url for m in config.models.values() if m.library]
        named_urls += [s.library_url for s in config.scorers.values()
                       if isinstance(s, ChatScorerKind)]  # fmt: skip
        check_hosts(filter(None, named_urls), default_file, url or "", os.environ)
    return config


def _moved(model: ModelConfig, changes: dict[str, str]) -> ModelConfig:
    """The model with what was said on the spot. The key that the file names for its own address
    stays there: another host gets EVENHAND_API_KEY, if any."""
    moved = model.model_copy(update=changes)
    stays = "base_url" in model.model_fields_set and origin(moved.base_url) != origin(
        model.base_url
    )
    return moved.model_copy(update={"api_key_env": None}) if stays else moved


def of_environment() -> Config:
    """What is known without a file: the default model is where the environment says."""
    return Config(models={"default": ModelConfig(base_url=environment.base_url() or DEFAULT_URL)})


def _with_keys(models: dict[str, ModelConfig]) -> dict[str, ModelConfig]:
    """The models with the variable of each one's key filled in."""
    default = Config(models=models).default_key()
    places = {name: model.key_place(default) for name, model in models.items()}
    updates = {
        name: {"api_key_env": destination and destination.variable}
        for name, destination in places.items()
    }
    return {name: model.model_copy(update=updates[name]) for name, model in models.items()}


def prices_in(path: Path) -> Prices:
    """Read the prices from a separate file, as --prices takes it."""
    return _read(path, PriceFile, "price").prices()


def _check_names(config: Config) -> None:
    reserved = [
        name for name in (*config.models, *config.scorers) if name.startswith((HARM, LENDER))
    ]
    if twice := sorted(config.scorers.keys() & {*config.models, *SCORERS, SUPPORT}) or reserved:
        raise UserError(
            f"The name {twice[0]!r} is used twice: a model, a built-in scorer or a harm has it. "
            "Rename it in the config."
        )
    names = [*config.models, *SCORERS, SUPPORT, *config.scorers, *map(HARM.__add__, config.harms)]
    for role, name in config.roles.items():
        if name not in names and not name.startswith(LENDER):
            available = ", ".join([*sorted(names), f"{LENDER}FOLDER"])
            raise UserError(
                f"[roles] in the config assigns {role} to {name!r}, which does not exist. "
                f"Name one of: {available}"
            )


def _read_config(path: Path | None) -> Config:
    if path is not None:
        return _read(path, Config, "config")
    if not DEFAULT_FILE.exists():
        return Config()
    if not DEFAULT_FILE.is_file():  # a pipe would be waited for, and it came with the folder
        raise UserError(f"{DEFAULT_FILE} in the current folder is not a regular file: remove it")
    config = _read(DEFAULT_FILE, Config, "config")
    programs = [m.model for m in config.models.values() if m.library in STARTS_PROGRAMS]
    if programs:
        raise UserError(
            f"{DEFAULT_FILE}: model = {programs[0]!r}: a file that is found in the current folder "
            f"may not start programs. Give the file by --config {DEFAULT_FILE}, or the model by "
            "--model"
        )
    asking = [*config.models.values(), *config.scorers.values(), config.search]
    for variable in (section.api_key_env for section in asking if section is not None):
        # Our choice: AWS_SECRET_ACCESS_KEY and GITHUB_TOKEN do not end so; model services' keys do.
        if variable and not variable.endswith("_API_KEY"):
            raise UserError(
                f"{DEFAULT_FILE}: api_key_env = {variable!r}: a file that is found in the current "
                "folder may name variables that end in _API_KEY only. Name the key so, or give "
                f"the file by --config {DEFAULT_FILE}"
            )
    return config


def _read(path: Path, form: type[_File], kind: str) -> _File:
    try:
        return form.model_validate(tomllib.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        raise UserError(f"There is no {kind} file {path}. Check the path.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not valid TOML: {error}. Fix the file.") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UserError(_misplaced(path, first["loc"], first["msg"])) from None


def _misplaced(path: Path, location: tuple[int | str, ...], problem: str) -> str:
    message = f"{path}: {'.'.join(map(str, location))}: {problem}"
    if "per_million" in str(location[-1]) or location[:1] in (("prices",), ("currency",)):
        message += (
            '. A price is a table [models."NAME"] with per_million_prompt_tokens and '
            "per_million_completion_tokens; quote a name that has a dot in it"
        )
    return message


def data_folder() -> DataFolder:
    """The folder that EVENHAND_DATA names, and the user's cache that downloads go to."""
    local = os.environ.get("EVENHAND_DATA")
    return DataFolder(local=Path(local) if local else None, cache=_cache())


def probe_folder() -> Path:
    """The folder in the user's cache that keeps what probes found."""
    return _cache() / "probes"


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evenhand"


def state_of_key(variable: str) -> str:
    """What to say of a key that doctor names: nothing where all is well."""
    key = os.environ.get(variable)
    if key and len(key) < SHORTEST:
        return f" (of fewer than {SHORTEST} characters: not removed from what comes back)"
    return "" if key else " (not set)"


def secret(variable: str | None) -> str | None:
    """What a variable holds that somebody named; None if none was named or it is empty."""
    return os.environ.get(variable) or None if variable else None


def endpoint(config: ModelConfig, model: str) -> RemoteModel:
    """The model of this name at the endpoint of a config, or by the library that asks it."""
    settings: dict[str, Any] = {
        "api_key": os.environ.get(config.api_key_env) if config.api_key_env else None,
        "attempt_timeout": config.attempt_timeout,
        "max_wait": config.max_wait,
        "params": config.params,
    }
    if config.library:
        return open_by_name(model or config.model or "", base_url=config.named_url, **settings)
    batch = None if config.batch == "vllm" else config.batch
    return Endpoint(config.base_url, model=model, api=config.api, batch=batch, **settings)


async def open_model(config: ModelConfig) -> ChatModel:
    """Open the endpoint of a config, checked: it answers, and it has the model. What a library asks
    is not looked at before: most providers have no list. A model whose requests are files has no
    endpoint."""
    if config.batch == "vllm":
        if config.model is None:
            raise UserError('batch = "vllm" needs the name of the model, as vLLM is told it')
        return VllmFiles(config.model, config.params)
    opened = endpoint(config, config.model or "")
    if not isinstance(opened, Endpoint):
        return opened
    if config.model is not None and opened.has_message_batches:  # its list wants another key header
        return opened
    try:
        models = await opened.list_models()
    finally:
        await opened.close()
    return endpoint(config, choose_model(config, models))


def choose_model(config: ModelConfig, models: tuple[str, ...] | None) -> str:
    """The model of a config, which must be one that the endpoint lists, or the only one there."""
    if config.model is None:
        if models and len(models) == 1:
            return models[0]
        raise UserError(
            f"{config.address} serves several models. Choose one with --model or EVENHAND_MODEL. "
            f"Available: {(', '.join(models) if models else 'no list of them')}"
        )
    if models and config.model not in models:
        raise UserError(
            f"{config.address} has no model {config.model!r}. Available: {', '.join(models)}. "
            "Choose one with --model."
        )
    return config.model


async def open_cast(config: Config, agents: Iterable[Agent[Any]]) -> Cast:
    """Open the cast for the agents of a method, with every model that a role uses, and the default
    model where an agent needs it."""
    agents = tuple(agents)
    used = {name for name in config.roles.values() if name in config.models}
    if any(agent.kind != "scorer" and agent.role not in config.roles for agent in agents):
        used.add("default")
    opened = await asyncio.gather(*(open_model(config.models[name]) for name in sorted(used)))
    models = dict(zip(sorted(used), opened, strict=True))
    return build_cast(config, {"default": nobody(), **models}, agents)


def search_model(config: SearchConfig) -> SearchModel:
    """The engine of a config, as a player of the role `search`."""
    pages = searching.PageFetcher() if config.pages else None
    return SearchModel(_engine(config), most=config.most, pages=pages)


def _engine(config: SearchConfig) -> SearchEngine:
    build: Callable[[SearchSettings], SearchEngine] = registry.load("searches", config.engine)
    return build(
        SearchSettings(
            url=config.url,
            path=config.path,
            api_key_env=config.api_key_env,
            environment=os.environ,
            cache=_cache(),
        )
    )


def build_cast(
    config: Config, models: dict[str, ChatModel], agents: Iterable[Agent[Any]] = ()
) -> Cast:
    """Build the models by role that a config names.

    A scorer role that the config does not assign is played by the word list, and the support role
    by the built-in judge.

    Args:
        config: The config.
        models: The models of the config, opened, by name.
        agents: The agents of the method, which may need such a role.

    Returns:
        The cast.
    """
    roles: dict[str, ChatModel] = {}
    # The word list plays a scorer that [roles] assigns to nobody. Not the offline model: that one
    # reports, and who reports must not steer. The context-support classifier reports nothing.
    unnamed = [agent.role for agent in agents if agent.kind == "scorer"]
    stand_ins = {role: SUPPORT if role == SUPPORT else "wordlist" for role in unnamed}
    for role, name in {**stand_ins, **config.roles}.items():
        roles[role] = models[name] if name in models else _tool(config, name)
    if config.search is not None:
        roles.setdefault(ROLE, search_model(config.search))
    return Cast(models["default"], roles, config.systems())


def _tool(config: Config, name: str) -> ChatModel:
    if name.startswith(LENDER):
        return critiques_of(name.removeprefix(LENDER))
    if name == SUPPORT:
        return SupportModel()
    return ScorerModel(scorer_by_name(config, name))


def scorer_by_name(config: Config, name: str) -> Scorer:
    """A built-in scorer, one of the config's, or one said on the spot as KIND or KIND=ADDRESS."""
    if name in SCORERS:
        return SCORERS[name]()
    if name in config.scorers:
        return build(config.scorers[name], os.environ, config.default_key())
    if name.startswith(HARM):
        harm = harm_by_name(config, name.removeprefix(HARM))
        judge = endpoint(config.models[harm.config.judge], harm.model)
        return certified_judge(harm, judge, config.certificates)
    if "=" in name or name in registry.names("scorers"):
        return build(spoken(name), os.environ, config.default_key())
    available = sorted([*SCORERS, *config.scorers, *map(HARM.__add__, config.harms)])
    raise UserError(f"unknown scorer {name!r}. {choices_for(name, available)}; or write KIND=URL")


@asynccontextmanager
async def opened_scorer(config: Config, scorer: Scorer | str) -> AsyncIterator[Scorer]:
    """Open a scorer by its name and close it afterwards; one that is given stays open."""
    if not isinstance(scorer, str):
        yield scorer
        return
    opened = scorer_by_name(config, scorer)
    try:
        yield opened
    finally:
        await opened.close()


def harm_by_name(config: Config, name: str) -> OwnHarm:
    """A harm of the config, certified or not."""
    return own_harm(
        name, config.harms, {role: model.model for role, model in config.models.items()}
    )
