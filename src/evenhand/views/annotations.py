"""This view shows a gate as the commands that make GitHub mark a change: one line for each check
that did not pass."""

from evenhand.findings.gate import Gate, GateCheckResult
from evenhand.views.gate_page import LEVELS, told
from evenhand.views.visible import visible


def render(gate: Gate) -> str:
    """Give the lines; every sign that could end a line or begin a command is escaped."""
    lines = [_line(gate.file, check) for check in gate.checks if check.verdict in LEVELS]
    if not gate.checks:
        lines = ["::error title=evenhand gate::the gate has no check"]
    return "".join(f"{line}\n" for line in lines)


def _line(file: str, check: GateCheckResult) -> str:
    properties = {"title": f"evenhand gate: {check.verdict}: {check.name}"}
    if file:
        properties = {"file": file, "line": str(check.line), **properties}
    parameters = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{LEVELS[check.verdict]} {parameters}::{_data(told(check))}"


def _data(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
