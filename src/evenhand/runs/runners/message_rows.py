"""Conversations in files: the messages of OpenAI's chat API and fine-tuning files, and those of
Inspect's samples."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, model_validator

from evenhand.core import Item, Message, message_of
from evenhand.core.errors import UserError
from evenhand.core.items import Role, Tool, ToolCall, ToolCalls, ToolResult

_STRICT = ConfigDict(strict=True, extra="forbid")


class _Function(BaseModel):
    model_config = _STRICT
    name: str
    arguments: str


class _ToolCall(BaseModel):
    model_config = _STRICT
    id: str
    type: Literal["function"] = "function"
    function: _Function


class _ToolFunction(BaseModel):
    model_config = _STRICT
    name: Annotated[str, Field(min_length=1)]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ToolRow(BaseModel):
    """A declared tool as it stands in a file."""

    model_config = _STRICT
    type: Literal["function"] = "function"
    function: _ToolFunction

    def tool(self) -> Tool:
        """The tool that the row declares."""
        return Tool(self.function.model_dump(exclude_none=True))


class _TextPart(BaseModel):
    model_config = _STRICT
    type: Literal["text"]
    text: str


class MessageRow(BaseModel):
    """A message as it stands in a file."""

    model_config = _STRICT
    role: Role
    content: str | list[_TextPart] | None = None
    tool_calls: list[_ToolCall] | None = None
    tool_call_id: str | None = None

    @model_validator(mode="after")
    def _fits_its_role(self) -> Self:
        if isinstance(self.content, list) and len(self.content) != 1:
            raise ValueError("content: one text is read, not a list of parts")
        if self.content is None and not self.tool_calls:
            raise ValueError("content is missing")
        if self.tool_calls and self.role != "assistant":
            raise ValueError("tool_calls: only the assistant calls tools")
        if (self.tool_call_id is not None) != (self.role == "tool"):
            raise ValueError("tool_call_id: the role tool needs it, no other role has it")
        return self

    def message(self) -> Message:
        """The message that the row describes."""
        text = self.content[0].text if isinstance(self.content, list) else self.content
        return message_of({**self.model_dump(exclude={"content"}), "content": text})

    def texts(self) -> list[str]:
        """The words of the message: its content, and the arguments of its tool calls."""
        calls = self.tool_calls or ()
        return [self.message().content, *(call.function.arguments for call in calls)]

    def with_texts(self, texts: Iterator[str]) -> Self:
        """The same message with its words replaced by the next of these texts."""
        content, values = next(texts), self.model_dump()
        for call in values["tool_calls"] or ():
            call["function"]["arguments"] = next(texts)
        empty = self.content is None and not content
        return type(self).model_validate({**values, "content": None if empty else content})


class _InspectCall(BaseModel):
    model_config = ConfigDict(strict=True)
    id: str
    function: str
    arguments: dict[str, Any]


class _InspectMessage(BaseModel):
    """A message of an Inspect sample. What Inspect adds to it, such as an id, is left out."""

    model_config = ConfigDict(strict=True)
    role: Role
    content: str | list[_TextPart]
    tool_calls: list[_InspectCall] | None = None
    tool_call_id: str | None = None

    def row(self) -> MessageRow:
        """The message in the form of OpenAI's API."""
        calls = [
            {"id": call.id, "function": {"name": call.function,
                                         "arguments": orjson.dumps(call.arguments).decode()}}
            for call in self.tool_calls or ()
        ]  # fmt: skip
        values = self.model_dump(exclude={"tool_calls"})
        return MessageRow.model_validate({**values, "tool_calls": calls or None})


@dataclass(frozen=True, slots=True)
class Turns:
    """A conversation, taken apart as an item has it."""

    history: tuple[Message, ...]
    prompt: str
    tool_turns: tuple[Message, ...]
    answer: str = ""
    answer_calls: tuple[ToolCall, ...] = ()

    def fields(self) -> Mapping[str, Any]:
        """The fields of an item without an answer."""
        return {"history": self.history, "prompt": self.prompt, "tool_turns": self.tool_turns}


def turns_of(messages: Sequence[Message], where: str) -> Turns:
    """Take a conversation apart into its last turn of the user, what stands around it, and the
    answer if the conversation ends in one.

    Args:
        messages: The messages of the conversation.
        where: File, line and field for error messages.

    Returns:
        The parts.

    Raises:
        UserError: If there is no turn to answer.
    """
    user_turns = [at for at, message in enumerate(messages) if message.role == "user"]
    if not user_turns:
        raise UserError(f"{where}: no message has the role user. Add the turn to answer")
    at = user_turns[-1]
    prompt, after = messages[at].content, messages[at + 1 :]
    if not prompt.strip():
        raise UserError(f"{where}.{at}: the last turn of the user is empty")
    answer, calls, after = _without_answer(after, where, len(messages) - 1)
    for number, message in enumerate(after, at + 1):
        if not isinstance(message, ToolCalls | ToolResult):
            raise UserError(
                f"{where}.{number}: between the last turn of the user and the answer are only "
                f"tool calls and their results, not a message of the {message.role}"
            )
    if after and not isinstance(after[-1], ToolResult):
        raise UserError(f"{where}: a tool call before the answer has no result")
    return Turns(tuple(messages[:at]), prompt, tuple(after), answer, calls)


def _without_answer(
    turns: Sequence[Message], where: str, last: int
) -> tuple[str, tuple[ToolCall, ...], Sequence[Message]]:
    """Split the turns after the last one of the user into the answer at their end and the rest."""
    if turns and isinstance(turns[-1], ToolCalls):
        return turns[-1].text, turns[-1].tool_calls, turns[:-1]
    if turns and type(turns[-1]) is Message and turns[-1].role == "assistant":
        if not turns[-1].content.strip():
            raise UserError(f"{where}.{last}: the answer is empty. Leave it out")
        return turns[-1].content, (), turns[:-1]
    return "", (), turns


class ConversationRow(BaseModel):
    """A conversation whose last answer, if it ends in one, is the stored answer: a text, or calls
    of tools without their results."""

    model_config = _STRICT
    messages: Annotated[list[MessageRow], Field(min_length=1)]
    tools: list[ToolRow] = []
    id: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    choices: Annotated[list[str], Field(max_length=26)] = []
    tags: dict[str, str] = {}

    def item(self, position: int, where: str) -> Item:
        """The item of this row."""
        turns = turns_of([row.message() for row in self.messages], f"{where}: messages")
        if self.tools and self.choices:
            raise UserError(f"{where}: tools: a question with choices is answered by one of them")
        return Item(id=self.id or str(position), choices=tuple(self.choices), tags=self.tags,
                    tools=tuple(row.tool() for row in self.tools), answer=turns.answer,
                    answer_calls=turns.answer_calls, **turns.fields())  # fmt: skip


class InspectRow(BaseModel):
    """A sample of Inspect. What it has for scoring is left out, what it needs to run is refused."""

    model_config = _STRICT
    input: Annotated[str | list[_InspectMessage], Field(min_length=1)]
    id: Annotated[str, Field(min_length=1, max_length=500)] | int | None = None
    choices: Annotated[list[str], Field(max_length=26)] | None = None
    target: str | list[str] = ""
    metadata: dict[str, Any] | None = None

    def item(self, position: int, where: str) -> Item:
        """The item of this sample."""
        name = str(position) if self.id is None else str(self.id)
        choices = tuple(self.choices or ())
        if isinstance(self.input, str):
            return Item(id=name, prompt=self.input, choices=choices)
        turns = turns_of([row.row().message() for row in self.input], f"{where}: input")
        return Item(id=name, choices=choices, answer=turns.answer,
                    answer_calls=turns.answer_calls, **turns.fields())  # fmt: skip
