"""The instruments that ask for log-probabilities, by name, and the runs of them in a folder."""

from functools import cache

from evenhand.core import registry
from evenhand.core.errors import UserError, choices_for
from evenhand.findings.comparison import Comparison, compare, together
from evenhand.instruments import instrument_named, loadable
from evenhand.instruments._options import OptionSet
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder


@cache
def all_sets() -> dict[str, OptionSet]:
    """Every dataset by its name. Asking for them loads every instrument."""
    loaded = loadable()
    return {each.name: each for each in loaded if isinstance(each, OptionSet)}


def usual_sets() -> tuple[str, ...]:
    """The datasets that are measured where none is named."""
    return tuple(name for name, instrument in all_sets().items() if instrument.usual)


def set_named(name: str) -> OptionSet:
    """Return the dataset of this name; a `UserError` lists the known ones."""
    if name not in all_sets():
        raise UserError(f"unknown dataset {name!r}. {choices_for(name, all_sets())}")
    return all_sets()[name]


def runs_at(location: str) -> dict[str, RunReader]:
    """The runs of likelihood sets in a folder, by set: its own, or one in each sub-folder that is
    named as a set; none where it holds another run."""
    folder = open_folder(location)
    if folder.exists("run.json"):
        run = RunReader(location)
        name = run.record.source.get("benchmark", "")
        known = name in registry.names("instruments")
        return {name: run} if known and isinstance(instrument_named(name), OptionSet) else {}
    return {
        name: RunReader(f"{location.rstrip('/')}/{name}")
        for name in all_sets()
        if folder.exists(f"{name}/run.json")
    }


def compare_sets(before: dict[str, RunReader], after: dict[str, RunReader]) -> list[Comparison]:
    """Every set that both sides have, with Holm over the primary changes of all of them."""
    names = [name for name in before if name in after]
    if not names:
        raise UserError(
            "the two runs have no dataset in common. Run `evenhand measure likelihood` "
            "with the same --sets"
        )
    return together([compare(all_sets()[name], before[name], after[name]) for name in names])
