"""This view shows a gate as the commands that make GitHub mark a change: one line for each check
that did not pass."""

from evenhand.findings.gate import Checked, Gate
from evenhand.views.gate_page import LEVELS, told
from evenhand.views.visible import visible


def render(found: Gate) -> str:
    """Give the lines; every sign that could end a line or begin a command is escaped."""
    shown = [_line(found.file, one) for one in found.checks if one.verdict in LEVELS]
    if not found.checks:
        shown = ["::error title=evenhand gate::the gate has no check"]
    return "".join(f"{line}\n" for line in shown)


def _line(file: str, one: Checked) -> str:
    properties = {"title": f"evenhand gate: {one.verdict}: {one.name}"}
    if file:
        properties = {"file": file, "line": str(one.line), **properties}
    named = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{LEVELS[one.verdict]} {named}::{_data(told(one))}"


def _data(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
