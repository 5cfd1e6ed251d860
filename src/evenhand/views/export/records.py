"""The numbers of a run as records that others collect: Every Eval Ever, and the Hub's model
pages. Both are those of a pack."""

from pathlib import Path

from evenhand.core.errors import UserError
from evenhand.views.export.exported import ExportedRun
from evenhand.views.pack import records


def write_eee(of: ExportedRun, folder: Path) -> list[str]:
    """Write the record of Every Eval Ever."""
    assert of.report is not None
    name = records.eee_name(of.report.side.run, of.run.digests())
    (folder / name).write_bytes(records.eee_file(of.report, of))
    return [name]


def write_hub(of: ExportedRun, folder: Path) -> list[str]:
    """Write the file that a model page of the Hub reads."""
    assert of.report is not None
    entries = records.hub_entries(of.report, of)
    if not entries:
        raise UserError(
            f"no main number of {of.run.path} is known, so there is nothing to show; why: "
            f"evenhand report {of.run.path}"
        )
    (folder / records.HUB_FILE).parent.mkdir()
    (folder / records.HUB_FILE).write_bytes(records.hub_file(entries))
    return [records.HUB_FILE]
