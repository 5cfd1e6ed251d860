"""An export shows one run in the form of another tool: one file per form, none per instrument."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evenhand.views.export import inspect_log, lm_eval, records, results, spreadsheet
from evenhand.views.export.exported import ExportedRun

__all__ = ["FORMS", "ExportFormat", "ExportedRun"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFormat:
    """A form that a run can be exported to: what it is, what it needs of a run, and how it is
    written into a folder, by the names of its files."""

    is_: str
    write: Callable[[ExportedRun, Path], list[str]]
    ending: str | None  # of the one file that it is; None where it is a folder
    texts: bool = False  # it shows prompts and answers
    report: bool = False  # it shows the numbers of a measured run
    asked: bool = False  # it shows each item as the data have it


FORMS = {
    "jsonl": ExportFormat(is_="the results as JSON lines", write=results.write_jsonl,
                          ending=".jsonl"),
    "parquet": ExportFormat(is_="the results as a Parquet table", write=results.write_parquet,
                            ending=".parquet"),
    "inspect": ExportFormat(is_="a log of Inspect, which `inspect view` opens",
                            write=inspect_log.write, ending=".eval", texts=True),
    "eee": ExportFormat(is_="a record of Every Eval Ever", write=records.write_eee, ending=None,
                        report=True),
    "hf": ExportFormat(is_="results for a model page of the Hugging Face Hub",
                       write=records.write_hub, ending=None, report=True),
    "lm-eval": ExportFormat(is_="samples of lm-evaluation-harness", write=lm_eval.write,
                            ending=None, texts=True, report=True, asked=True),
    "messages": ExportFormat(is_="conversations that end in the answers, as for fine-tuning",
                             write=results.write_messages, ending=".jsonl", texts=True),
    "csv": ExportFormat(is_="a table for spreadsheets", write=spreadsheet.write, ending=".csv"),
}  # fmt: skip
