"""The instruments that ask for log-probabilities, by name, and the runs of them in a folder."""

from evenhand.core.errors import UserError, choices_for
from evenhand.findings.comparison import Comparison, compare, together
from evenhand.instruments import loadable
from evenhand.instruments._options import OptionSet
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder

SETS: dict[str, OptionSet] = {
    instrument.name: instrument for instrument in loadable() if isinstance(instrument, OptionSet)
}
USUAL = tuple(
    name for name, instrument in SETS.items() if instrument.usual
)  # where no set is named


def set_named(name: str) -> OptionSet:
    """Return the dataset of this name; a `UserError` lists the known ones."""
    if name not in SETS:
        raise UserError(f"unknown dataset {name!r}. {choices_for(name, SETS)}")
    return SETS[name]


def runs_at(location: str) -> dict[str, RunReader]:
    """The runs of likelihood sets in a folder, by set: its own, or one in each sub-folder that is
    named as a set; none where it holds another run."""
    folder = open_folder(location)
    if folder.exists("run.json"):
        run = RunReader(location)
        name = run.record.source.get("benchmark", "")
        return {name: run} if name in SETS else {}
    return {
        name: RunReader(f"{location.rstrip('/')}/{name}")
        for name in SETS
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
    return together([compare(SETS[name], before[name], after[name]) for name in names])
