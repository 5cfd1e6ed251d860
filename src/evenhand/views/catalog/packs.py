"""The words of packs, and of checks of them."""

from collections.abc import Callable, Mapping, Sequence


def _runs(*, runs: int, unfinished: Sequence[str]) -> str:
    open_ = f"; not finished: {', '.join(unfinished)}" if unfinished else ""
    return f"{runs}, every answer intact{open_}"


def _drawn_by(*, file: str, drawn_by: str | None, here: str | None) -> str:
    return (
        f"{file} was drawn by {drawn_by or 'nothing'}, and here is {here or 'nothing'}: not "
        "compared"
    )


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "pack.missing": "missing: {name}",
    "pack.not_listed": "not listed: {name}",
    "pack.changed": "changed: {name}",
    "pack.no_certificates": "no certificates were given: {name}",
    "pack.zip_differs": "the zip file has bytes that belong to none of its files, or other headers",
    "pack.files": "{files:,} files, each as listed in {listed_in}",
    "pack.files_differ": "they are not as listed",
    "pack.signature_moved": "it was taken away, or put there later",
    "pack.unsigned": "there is none",
    "pack.unsigned_anybody": "there is none: the pack may have been made anew by anybody",
    "pack.signing_not_installed": "not checked: {reason}",
    "pack.no_plain_key": "{file} is no plain key",
    "pack.another_key": "{file} is another key than the one given",
    "pack.not_of_key": lambda *, given, over: (
        f"it is not that of the key {'given' if given else 'in the pack'} over this {over}"
    ),
    "pack.own_key": "signed by the key in the pack itself, which proves nothing about who: give "
    "the public key of whom you trust with --key",
    "pack.of_key": "that of the key given, over {over}",
    "pack.first": "it names no pack before it",
    "pack.names": "it names “{title}”, {sha256}; --previous PACK checks it",
    "pack.names_another": "it names “{title}”, {sha256}; given is {given}",
    "pack.previous_damaged": "it names “{title}”, {sha256}; the pack given has that {listed_in}, "
    "and not the files it lists",
    "pack.follows": "it follows “{title}”, {sha256}",
    "pack.of_no_run": "of no run: {name}",
    "pack.only_hashes": "a light pack has the hashes of its runs alone",
    "pack.light": "the run folders are not in the pack, only their hashes: replay.sh says what to "
    "do",
    "pack.no_runs": "not repeated: there are no runs",
    "pack.not_repeated": "not repeated: the files are not as they were",
    "pack.another_run": "{run} is another run than {file} says",
    "pack.line": "{name}: {line}",
    "pack.other_unfinished": "{file} names other runs as not finished than those that are not",
    "pack.belongs_to_no_run": "{name}: it belongs to no run",
    "pack.runs": _runs,
    "pack.damaged": "damaged",
    "pack.other_version": "not repeated: that needs evenhand {needs}, and here is {here}",
    "pack.cannot_repeat": "they cannot be repeated: {kind}: {error}",
    "pack.follows_from_no_run": "{name}: it follows from no run",
    "pack.page_differs": "{name} is not what its runs give, also without its pictures",
    "pack.drawn_by": _drawn_by,
    "pack.repeated": "{figures:,} figures in {file}, and {files:,} files made of them, repeated "
    "from the runs",
    "pack.figures_differ": "not those of the runs",
    "pack.not_what_runs_give": "{name} is not what its runs give",
    "pack.not_as_written": "{name}: it is not written as evenhand writes it",
    "pack.scope": "Figures are of the test sets and samples that the runs name; no other groups, "
    "languages or harms were looked at.",
    "pack.hashes": "Hashes show that bytes are the same; they do not show who made them. A "
    "signature shows that the holder of its key had them.",
}
