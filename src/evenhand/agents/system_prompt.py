"""The system prompt of the model under test goes before what an agent is told."""

from evenhand.domain import Message


def instructed(messages: tuple[Message, ...], system: str | None) -> tuple[Message, ...]:
    """Put a system prompt before the words of an agent. Both are one message where the agent has
    its own: many chat templates take no second one."""
    if system is None:
        return messages
    agent_system = messages[0].content if messages[0].role == "system" else ""
    first = Message("system", f"{system}\n\n{agent_system}" if agent_system else system)
    return (first, *messages[1:]) if agent_system else (first, *messages)
