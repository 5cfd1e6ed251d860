"""The policy file says what is checked, how, and what happens if it cannot be.

# policy.toml
mode = "hold"                  # nothing leaves before its verdict
screen = "staged"              # a cheap scorer looks at every text
band = [0.35, 0.9]             # below: passed; from the first on the team of agents decides
method = "stardtox"
set = ["max_iterations=1"]
on_failure = "block"

[tenants.hr]
keys = ["sha256:…"]            # of `evenhand gateway key`
requests_a_minute = 600

[tenants.hr.routes."/completions"]
mode = "observe"
"""

import hashlib
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from evenhand.core.errors import UserError
from evenhand.gateway.quotas import Allowance

LITELLM = "/litellm"
LITELLM_ALONE = "/litellm/alone"  # answers whose request was not seen; the policy is the same
ROUTES = ("/chat/completions", "/completions", "/responses", "/messages", LITELLM)
ANYBODY = "anybody"  # the tenant of a gateway that has none

_Score = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_LIST = Field(strict=False)  # TOML has lists where we have tuples
_Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]


class CheckPolicy(BaseModel):
    """What is done with an answer. A tenant, and a route of a tenant, may each say it otherwise."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    mode: Literal["hold", "window", "observe"] = "hold"
    # A built-in scorer, one of the config file, or a screen file (.json), whose cut-offs then are
    # the band.
    screen: str = "staged"
    # Our choice, by what docs/gateway.md says of the offline scorer's scores.
    band: Annotated[tuple[_Score, _Score], _LIST] = (0.35, 0.9)
    method: str = "stardtox"
    set: Annotated[tuple[str, ...], _LIST] = ()  # settings of the method, as --set takes them
    deadline: _Seconds = 20.0  # of the check, behind the upstream's last byte
    calls: Annotated[int, Field(ge=1)] = 12  # of agents, for one request
    tokens: Annotated[int, Field(ge=1)] = 20_000
    longest: Annotated[int, Field(ge=1)] = 20_000  # characters of a text that can be screened
    longest_together: Annotated[int, Field(ge=1)] = 60_000  # of all texts of one answer
    sentences: bool = True  # the screen also reads each sentence alone; the highest score counts
    # A text that is not English: the agents decide, or it is sent and reported as not run, or the
    # screen decides ("ignore": for a scorer that reads other languages).
    not_english: Literal["agents", "report", "ignore"] = "agents"
    on_failure: Literal["block", "pass_flagged", "stored_text"] = "block"
    stored_text: str = ""
    content: Literal["off", "hashed", "on"] = "off"  # what evidence keeps of the words

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        low, high = self.band
        if low > high:
            raise ValueError("band: the first number is the lower one")
        if self.on_failure == "stored_text" and not self.stored_text.strip():
            raise ValueError('on_failure = "stored_text" needs a stored_text')
        return self

    def otherwise(self, settings: "dict[str, Any]") -> "CheckPolicy":
        """This check, with what is said otherwise."""
        return CheckPolicy.model_validate({**self.model_dump(), **settings})


_OWN = frozenset(CheckPolicy.model_fields)
_OF_A_TENANT = frozenset({"method", "set", "content"})


class Tenant(BaseModel):
    """Who may use the gateway, how much, and what is checked otherwise for them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    keys: Annotated[list[str], Field(min_length=1)]
    requests_a_minute: Annotated[int, Field(ge=1)] | None = None
    at_once: Annotated[int, Field(ge=1)] | None = None
    tokens_a_day: Annotated[int, Field(ge=1)] | None = None
    check: dict[str, Any] = {}
    routes: dict[str, dict[str, Any]] = {}


class Policy(BaseModel):
    """The whole file, read and checked before anything is served."""

    model_config = ConfigDict(frozen=True, strict=True)

    check: CheckPolicy = CheckPolicy()
    tenants: dict[str, Tenant] = {}
    upstream_seconds: _Seconds = 300.0  # of an answer, from the first byte sent to the last read
    upstream_slow: _Seconds | None = None  # an answer that takes longer counts as a failure
    at_once: Annotated[int, Field(ge=1)] = 1024  # requests under way, over all tenants
    require_evidence: bool = False  # nothing goes out that is not on record
    require_certified_judges: bool = False  # each judge must hold a certificate that says pass
    operators: list[str] = []  # hashes of keys that may read /metrics
    # The checksums of the screens, by name: no file says them, the hash of the policy covers them.
    screens: dict[str, str] = {}

    def check_for(self, tenant: str, route: str) -> CheckPolicy:
        """What is done with the answers of a route to a tenant."""
        options = self.tenants.get(tenant)
        if options is None:
            return self.check
        settings = {**options.check, **options.routes.get(route, {})}
        return self.check.otherwise(settings) if settings else self.check

    @property
    def grace(self) -> float:
        """The seconds that a request under way may still take when the process is asked to end."""
        return self.upstream_seconds + max(check.deadline for check in self.checks())

    def allowances(self) -> dict[str, Allowance]:
        """How much each tenant may use."""
        if not self.tenants:
            return {ANYBODY: Allowance()}
        return {
            name: Allowance(
                requests_a_minute=tenant.requests_a_minute,
                at_once=tenant.at_once,
                tokens_a_day=tenant.tokens_a_day,
            )
            for name, tenant in self.tenants.items()
        }

    def checks(self) -> list[CheckPolicy]:
        """Every check that there can be."""
        routes = {(name, route) for name, tenant in self.tenants.items() for route in tenant.routes}
        places = {(ANYBODY, ""), *((name, "") for name in self.tenants), *routes}
        return [self.check_for(*pair) for pair in sorted(places)]

    def sha256(self) -> str:
        """The hash of what is in force, for evidence. The keys are in it by their hashes, the
        screens by their bytes."""
        dumped = orjson.dumps(self.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(dumped).hexdigest()


def read_policy(path: Path | None) -> Policy:
    """Read the file; None is a policy of defaults, without tenants."""
    if path is None:
        return Policy()
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"the policy file {path} cannot be read: {error}") from None
    try:
        return _policy(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(f"{path}: {where}: {first['msg']}") from None


def _policy(raw: dict[str, Any]) -> Policy:
    """Sort what stands at one level of the file into checks and the rest."""
    raw_tenants = raw.get("tenants", {})
    tenants = (
        {name: _tenant(tenant) for name, tenant in raw_tenants.items()}
        if isinstance(raw_tenants, dict)
        else raw_tenants
    )
    rest = {key: value for key, value in raw.items() if key not in _OWN and key != "tenants"}
    fields = Policy.model_fields.keys() - {"check", "tenants", "screens"}
    unknown = sorted(rest.keys() - fields)
    if unknown:
        allowed = ", ".join(sorted(_OWN | fields))
        raise UserError(f"the policy has no {unknown[0]!r}; it has: {allowed} and [tenants.NAME]")
    check = {key: value for key, value in raw.items() if key in _OWN}
    policy = Policy.model_validate({"check": check, "tenants": tenants, **rest})
    modes = {check.mode for check in policy.checks()}  # each must hold together
    if policy.require_evidence and modes - {"hold"}:
        raise UserError(
            "require_evidence: only hold puts an answer on record before it goes out, so that no "
            f'check may have mode = "{min(modes - {"hold"})}"'
        )
    for name, tenant in policy.tenants.items():
        for route, settings in tenant.routes.items():
            if route not in ROUTES:
                raise UserError(
                    f"[tenants.{name}.routes.{route!r}]: the routes are {', '.join(ROUTES)}"
                )
            if apart := sorted(settings.keys() & _OF_A_TENANT):
                raise UserError(
                    f"[tenants.{name}.routes.{route!r}]: {apart[0]} is said of a tenant, whose "
                    "traffic is one run a day"
                )
    return policy


def _tenant(raw: Any) -> Any:
    if not isinstance(raw, dict):
        return raw
    rest = {key: value for key, value in raw.items() if key not in _OWN}
    if "check" in rest:
        raise UserError("[tenants.NAME.check]: what is checked stands in [tenants.NAME] itself")
    return {**rest, "check": {key: value for key, value in raw.items() if key in _OWN}}
