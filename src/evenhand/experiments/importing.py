"""Find the instrument that scores a log of another tool."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from evenhand import interop as foreign
from evenhand.core import registry
from evenhand.core.errors import UserError
from evenhand.instruments import instrument_named
from evenhand.instruments._contract import Instrument


def instrument_for(log: Path, name: str | None = None) -> Instrument:
    """Find the instrument that scores a log: the one of this name, else by the log's task.

    Raises:
        UserError: If the log cannot be read, or no instrument scores its task.
    """
    if not log.is_file():
        raise UserError(f"{log} is not a file")
    instrument = instrument_named(name) if name else _by_task(log)
    if not instrument.elsewhere:
        raise UserError(f"{instrument.name} reads no logs of other tools; bbq does")
    return instrument


def _by_task(log: Path) -> Instrument:
    """Find the instrument that has the task of a log among its names elsewhere."""
    foreign_log = foreign.read(log)
    if foreign_log is None:
        raise UserError(
            f"{log} is no log of Inspect (.eval) or lm-evaluation-harness (samples_*.jsonl). Of "
            "answers of your own say what scores them: evenhand measure bbq --answers FILE --out "
            "runs/theirs"
        )
    task = foreign_log.origin.task.rpartition("/")[2]
    instruments = list(_loaded())
    for instrument in instruments:
        if any(task == name or task.startswith(f"{name}_") for name in instrument.elsewhere):
            return instrument
    those = ", ".join(name for instrument in instruments for name in instrument.elsewhere)
    raise UserError(
        f"{log} is of the task {task[:60]!r}; what can be scored: {those}. If it is one of these "
        "under another name, say so with --instrument"
    )


def _loaded() -> Iterator[Instrument]:
    """All instruments but those of other packages that cannot be loaded."""
    for name in registry.names("instruments"):
        with suppress(UserError):
            yield instrument_named(name)
