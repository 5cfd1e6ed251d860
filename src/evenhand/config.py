"""The reader of the config file and, but for `environment`, of the environment.

# evenhand.toml
[models.default]
base_url = "http://127.0.0.1:8080/v1"
model = "smollm2"

[models.judge]
base_url = "https://gateway.example/v1"
model = "a-larger-model"
api_key_env = "GATEWAY_KEY"

[cast]
bias_evaluator = "judge"
scorer = "wordlist"

[scorers.moderation]                     # see docs/scorers.md
kind = "openai_moderation"

[limits]
seconds = 600

[search]                                 # off without it; see docs/search.md
engine = "mediawiki"

[judges]                                 # see docs/malibu.md
certificates = "certificates"

[prices]                                 # or a file of its own, by --prices FILE
currency = "USD"

[prices.models."a-larger-model"]
per_million_prompt_tokens = 2.50
per_million_completion_tokens = 10.00
"""

import os
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from evenhand import environment, registry
from evenhand.agents import Agent, Cast, Limits
from evenhand.domain.prices import Price, Prices
from evenhand.errors import UserError
from evenhand.instruments._contract import DataFolder
from evenhand.models import Endpoint
from evenhand.models.base import ChatModel
from evenhand.runners.borrowing import critiques_of
from evenhand.scorers import Scorer, ScorerModel, WordList
from evenhand.scorers.kinds import ScorerConfig, build, spoken
from evenhand.scorers.shipped import offline
from evenhand.tools import search as searching
from evenhand.tools.search import SearchEngine, SearchModel
from evenhand.tools.search.base import MOST_HITS, ROLE
from evenhand.tools.search.engines import SearchSettings

DEFAULT_URL = "http://127.0.0.1:8080/v1"
DEFAULT_FILE = Path("evenhand.toml")
SCORERS: dict[str, Callable[[], Scorer]] = {"offline": offline, "wordlist": WordList}  # built in
LENDER = "run:"  # a run whose critiques the placebo critic takes (`critique=other`)

_Positive = Annotated[float, Field(gt=0)]
_Money = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_File = TypeVar("_File", bound=BaseModel)


class ModelConfig(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    base_url: str = DEFAULT_URL
    model: str | None = None  # None: the only model that the endpoint has
    api_key_env: str = "EVENHAND_API_KEY"
    attempt_timeout: _Positive = 120.0
    max_wait: _Positive = 60.0

    @property
    def address(self) -> str:
        """What may be shown of the URL: some write their key behind the question mark."""
        return self.base_url.partition("?")[0]


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


class PriceConfig(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    per_million_prompt_tokens: _Money
    per_million_completion_tokens: _Money


class PriceFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    currency: Annotated[str, Field(min_length=1, max_length=12)] = "USD"
    models: dict[str, PriceConfig]

    def prices(self) -> Prices:
        listed = {name: Price(**price.model_dump()) for name, price in self.models.items()}
        return Prices(listed, self.currency)


class JudgesConfig(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    certificates: Path  # a folder of what `evenhand judge-check` wrote


class Config(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    models: dict[str, ModelConfig] = {}
    cast: dict[str, str] = {}  # role -> a name in models, a scorer's name, or run:FOLDER
    scorers: dict[str, ScorerConfig] = {}
    limits: Limits = Limits()
    search: SearchConfig | None = None  # None: nothing is searched, nothing leaves
    judges: JudgesConfig | None = None
    prices: PriceFile | None = None

    def default_model(self) -> ModelConfig:
        return self.models.get("default", ModelConfig())


def load(
    path: Path | None,
    base_url: str | None,
    model: str | None,
    *,
    reply_tokens: int | None = None,
    answer_tokens: int | None = None,
    prices: Path | None = None,
) -> Config:
    """The config file, overruled by the environment, overruled by what was said on the spot."""
    config = _read_config(path)
    default = config.default_model()
    changes = {
        "base_url": base_url or environment.base_url(),
        "model": model or os.environ.get("EVENHAND_MODEL"),
    }
    default = default.model_copy(update={k: v for k, v in changes.items() if v})
    limits = replace(
        config.limits,
        reply_tokens=reply_tokens or config.limits.reply_tokens,
        answer_tokens=answer_tokens or config.limits.answer_tokens,
    )
    config = config.model_copy(
        update={
            "models": {**config.models, "default": default},
            "limits": limits,
            "prices": _read(prices, PriceFile, "price") if prices else config.prices,
        }
    )
    _check_names(config)
    return config


def prices_in(path: Path) -> Prices:
    """The prices in a file of their own, as --prices takes it."""
    return _read(path, PriceFile, "price").prices()


def _check_names(config: Config) -> None:
    twice = sorted(config.scorers.keys() & {*config.models, *SCORERS})
    if twice:
        raise UserError(f"[scorers.{twice[0]}]: a model or a built-in scorer has that name")
    names = [*config.models, *SCORERS, *config.scorers]
    for role, name in config.cast.items():
        if name not in names and not name.startswith(LENDER):
            known = ", ".join([*sorted(names), f"{LENDER}FOLDER"])
            raise UserError(f"the cast gives {role} to {name!r}, which is none of: {known}")


def _read_config(path: Path | None) -> Config:
    if path is None and not DEFAULT_FILE.exists():
        return Config()
    return _read(path or DEFAULT_FILE, Config, "config")


def _read(path: Path, form: type[_File], kind: str) -> _File:
    try:
        return form.model_validate(tomllib.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        raise UserError(f"there is no {kind} file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not valid TOML: {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UserError(_misplaced(path, first["loc"], first["msg"])) from None


def _misplaced(path: Path, place: tuple[int | str, ...], problem: str) -> str:
    said = f"{path}: {'.'.join(map(str, place))}: {problem}"
    if "per_million" in str(place[-1]) or place[:1] in (("prices",), ("currency",)):
        said += (
            '. A price is a table [models."NAME"] with per_million_prompt_tokens and '
            "per_million_completion_tokens; quote a name that has a dot in it"
        )
    return said


def _data() -> Path | None:
    local = os.environ.get("EVENHAND_DATA")
    return Path(local) if local else None


def data_folder() -> DataFolder:
    """The folder that EVENHAND_DATA names, and the user's cache that downloads go to."""
    return DataFolder(local=_data(), cache=_cache())


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evenhand"


def ray_cluster() -> str | None:
    """The cluster that RAY_ADDRESS names, as it does within a Ray job; None: start one here."""
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # else Ray warns at every start
    return os.environ.get("RAY_ADDRESS")


def endpoint(config: ModelConfig, model: str) -> Endpoint:
    return Endpoint(
        config.base_url,
        model=model,
        api_key=os.environ.get(config.api_key_env),
        attempt_timeout=config.attempt_timeout,
        max_wait=config.max_wait,
    )


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
    """The cast of a config for the agents of a method. `models` are the config's models, opened."""
    roles: dict[str, ChatModel] = {}
    # The word list plays a scorer that the cast gives to nobody. Not the offline model: that one
    # reports, and who reports must not steer.
    stand_ins = {agent.role: "wordlist" for agent in agents if agent.kind == "scorer"}
    for role, name in {**stand_ins, **config.cast}.items():
        roles[role] = models[name] if name in models else _tool(config, name)
    if config.search is not None:
        roles.setdefault(ROLE, search_model(config.search))
    return Cast(models["default"], roles)


def _tool(config: Config, name: str) -> ChatModel:
    if name.startswith(LENDER):
        return critiques_of(name.removeprefix(LENDER))
    return ScorerModel(scorer_by_name(config, name))


def scorer_by_name(config: Config, name: str) -> Scorer:
    """A built-in scorer, one of the config's, or one said on the spot as KIND=ADDRESS."""
    if name in SCORERS:
        return SCORERS[name]()
    if name in config.scorers:
        return build(config.scorers[name], os.environ)
    if "=" in name:
        return build(spoken(name), os.environ)
    known = ", ".join(sorted([*SCORERS, *config.scorers]))
    raise UserError(f"there is no scorer {name!r}; there are: {known}; or write KIND=URL")
