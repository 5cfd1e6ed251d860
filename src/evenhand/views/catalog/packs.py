"""The words of evidence bundles and of their verification."""

from collections.abc import Callable, Mapping, Sequence


def _runs(*, runs: int, unfinished: Sequence[str]) -> str:
    open_ = f"; not finished: {', '.join(unfinished)}" if unfinished else ""
    return f"{runs}, every answer intact{open_}"


def _drawn_by(*, file: str, drawn_by: str | None, here: str | None) -> str:
    return (
        f"not compared: {file} was drawn by {drawn_by or 'nothing'}, and this machine has "
        f"{here or 'nothing'}"
    )


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "pack.missing": "missing: {name}",
    "pack.not_listed": "not listed: {name}",
    "pack.changed": "changed: {name}",
    "pack.no_certificates": "no certificates were given: {name}",
    "pack.zip_differs": "the zip file has bytes that belong to none of its files, or other headers",
    "pack.files": "{files:,} files, each as listed in {listed_in}",
    "pack.files_differ": "the files differ from the list",
    "pack.signature_moved": "the signature was removed, or added later",
    "pack.unsigned": "no signature",
    "pack.unsigned_anybody": "no signature: anybody may have rebuilt the bundle",
    "pack.signing_not_installed": "not checked: {reason}",
    "pack.no_plain_key": "{file} is not a plain key",
    "pack.another_key": "{file} differs from the given key",
    "pack.not_of_key": lambda *, given, over: (
        f"not valid for the key {'given' if given else 'in the bundle'} and this {over}"
    ),
    "pack.own_key": "signed by the key in the bundle itself, which does not prove who signed: give "
    "a public key that you trust with --key",
    "pack.of_key": "valid for the given key, over {over}",
    "pack.first": "no previous bundle",
    "pack.names": "previous: “{title}”, {sha256}; check it with --previous PACK",
    "pack.names_another": "previous: “{title}”, {sha256}; given: {given}",
    "pack.previous_damaged": "previous: “{title}”, {sha256}; the given bundle has that "
    "{listed_in}, "
    "but not the files in it",
    "pack.follows": "follows “{title}”, {sha256}",
    "pack.of_no_run": "without a run: {name}",
    "pack.only_hashes": "a light bundle contains only the hashes of its runs",
    "pack.light": "the run folders are not in the bundle, only their hashes: see replay.sh",
    "pack.no_runs": "not recomputed: no runs",
    "pack.not_repeated": "not recomputed: the files changed",
    "pack.another_run": "{run} is not the run that {file} names",
    "pack.line": "{name}: {line}",
    "pack.other_unfinished": "{file} lists the wrong runs as unfinished",
    "pack.belongs_to_no_run": "{name} belongs to no run",
    "pack.runs": _runs,
    "pack.damaged": "damaged",
    "pack.other_version": "not recomputed: needs evenhand {needs}, installed is {here}",
    "pack.cannot_repeat": "cannot be recomputed: {kind}: {error}",
    "pack.follows_from_no_run": "{name} does not follow from a run",
    "pack.page_differs": "{name} differs from the runs, also without its pictures",
    "pack.drawn_by": _drawn_by,
    "pack.repeated": "{figures:,} figures in {file} and {files:,} files recomputed from the runs",
    "pack.figures_differ": "the figures differ from the runs",
    "pack.not_what_runs_give": "{name} differs from the runs",
    "pack.not_as_written": "{name} does not have the form that evenhand writes",
    "pack.scope": "The figures cover the datasets and samples of the runs. Other groups, "
    "languages and harms were not measured.",
    "pack.hashes": "Hashes show that bytes did not change, not who made them. A signature shows "
    "that the holder of the key had them.",
}
