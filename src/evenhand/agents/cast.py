"""A cast gives each role of a method its model and its system prompt."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from evenhand.agents.agent import Agent
from evenhand.core.errors import UserError
from evenhand.models.ask_once import AskOnce
from evenhand.models.base import ChatModel
from evenhand.models.replay import ReplayModel


@dataclass(frozen=True, slots=True)
class Cast:
    """A cast says which model plays which role.

    Args:
        default: The model of every role that `roles` does not name.
        roles: The models of single roles.
        system: The system prompt of the model that plays a role, or of the `default` model. Only
            agents that write get it (`Agent.takes_system`).
    """

    default: ChatModel
    roles: Mapping[str, ChatModel] = field(default_factory=dict)
    system: Mapping[str, str] = field(default_factory=dict)

    def model_for(self, role: str) -> ChatModel:
        return self.roles.get(role, self.default)

    def system_for(self, agent: Agent[Any]) -> str | None:
        """The system prompt that an agent gets; None where it gets none."""
        if not agent.takes_system:
            return None
        return self.system.get(agent.role if agent.role in self.roles else "default") or None

    def with_system(self, system: str | None) -> "Cast":
        """Give the same cast whose default model has this system prompt."""
        return self if system is None else replace(self, system={**self.system, "default": system})

    def models(self) -> tuple[ChatModel, ...]:
        """The models of the cast, each once; of one behind a reply cache, the model itself."""
        players = (self.default, *self.roles.values())
        models = [model.model if isinstance(model, AskOnce) else model for model in players]
        return tuple({id(model): model for model in models}.values())

    def through(self, wrap: Callable[[ChatModel], ChatModel]) -> "Cast":
        """Give the same cast with each model wrapped, once per model."""
        players = {id(model): model for model in (self.default, *self.roles.values())}
        wrapped = {key: _wrapped(model, wrap) for key, model in players.items()}
        roles = {role: wrapped[id(model)] for role, model in self.roles.items()}
        return Cast(wrapped[id(self.default)], roles, self.system)

    def describe(self, agents: Iterable[Agent[Any]]) -> dict[str, Any]:
        """Describe who plays each role that these agents have, with the system prompt that it gets,
        and the default model. A role that nobody asks is left out: it does not decide what the run
        is."""
        roles: dict[str, dict[str, Any]] = {}
        for agent in agents:
            player = roles.setdefault(agent.role, {**self.model_for(agent.role).describe()})
            if (system := self.system_for(agent)) is not None:
                player["system"] = system
        return {"default": self.default.describe(), **roles}

    async def close(self) -> None:
        for model in self.models():
            await model.close()


def require_tools(agents: Iterable[Agent[Any]], cast: Cast) -> None:
    """Refuse a cast in which the default model would have to play a tool or a scorer."""
    for agent in agents:
        if agent.needs_player and agent.role not in cast.roles:
            how = agent.cast_as or f"Assign `{agent.role}` under [roles] in the config file."
            raise UserError(f"No model, scorer or tool has the role {agent.role!r}. {how}")


def _wrapped(model: ChatModel, wrap: Callable[[ChatModel], ChatModel]) -> ChatModel:
    """Wrap a model in the order recorded turns → reply cache → spending cap → model. The recorded
    turns ("tape") must see every item's own turn, so they go outside the cache; the spending cap
    pays for what is sent, so it goes inside."""
    if not isinstance(model, AskOnce):
        return wrap(model)
    inside = wrap(model.model)
    return wrap(model) if isinstance(inside, ReplayModel) else model.around(inside)
