"""The contract of a method: a frozen dataclass whose fields are its settings."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Protocol, cast

from pydantic import TypeAdapter

from evenhand.agents.agent import Agent
from evenhand.agents.conversation import Ask
from evenhand.core import Answer, Item, registry
from evenhand.core.errors import UserError


class Method(Protocol):
    """A method declares its agents and answers one item by asking them."""

    name: ClassVar[str]

    def agents(self) -> tuple[Agent[Any], ...]:
        """List every agent that it may ask: the run record keeps the hashes of their prompts."""
        ...

    async def answer(self, item: Item, ask: Ask) -> Answer: ...


def named(name: str) -> type[Any]:
    """Give the class of a registered method, one of this package or of another."""
    loaded: Any = registry.load("methods", name)
    if not (is_dataclass(loaded) and hasattr(loaded, "agents") and hasattr(loaded, "answer")):
        raise UserError(
            f"the method {name!r} is not made as one: it must be a frozen dataclass with name, "
            "agents() and answer(), as evenhand.Method says"
        )
    return cast(type[Any], loaded)


def settings(method: Any) -> dict[str, Any]:
    """The fields of a method, for the run record. A field that is declared with `left_out` stands
    there only where it has another value: records from before the field mean that value."""
    values = {field: getattr(method, field.name) for field in fields(method)}
    return {
        field.name: value
        for field, value in values.items()
        if "left_out" not in field.metadata or value != field.metadata["left_out"]
    }


def of_record(recorded: Mapping[str, Any]) -> Method:
    """The method that made a run, from what its record says of it.

    Args:
        recorded: The name and the settings, as `RunRecord.method` has them.
    """
    kind = named(recorded["name"])
    left_out = {
        field.name: field.metadata["left_out"]
        for field in fields(kind)
        if "left_out" in field.metadata
    }
    method: Method = TypeAdapter(kind).validate_python({**left_out, **recorded["settings"]})
    return method


def within(method: Any, calls: int) -> Any:
    """The method with the largest setting whose worst case fits a number of calls an item; the
    method itself where no setting of it decides that number."""
    return method.within(calls) if hasattr(method, "within") else method
