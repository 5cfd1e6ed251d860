"""The figures of a pack, how a repeat is compared with them, and the script that repeats them."""

import json
import math
import shlex
from collections.abc import Iterator
from typing import Any

import orjson

from evenhand.findings.combined_report import CombinedReport
from evenhand.findings.pack_manifest import (
    CERTIFICATES,
    FIGURES,
    PRICES,
    PackedPrices,
    PackManifest,
)
from evenhand.views.files import plain, printed

# Our choice: another processor may add in another order, which moves the last digits of a sum. What
# should be 0 may then be some 1e-14; the second number is for that alone, since a p-value may be
# small too.
_CLOSE, _NOTHING = 1e-9, 1e-12
_ABSENT = object()  # no key, which is not null
_LONGEST = 80  # our choice, in characters of a text that differs


def written(dossier: CombinedReport) -> bytes:
    """Write all figures of a dossier, each with its name."""
    return printed(plain(dossier.to_dict())).encode()


def count(value: Any) -> int:
    """Count the numbers in plain data."""
    if isinstance(value, dict):
        return sum(map(count, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(count, value))
    return int(isinstance(value, int | float) and not isinstance(value, bool))


def differences(packed: Any, again: Any, where: str = "") -> Iterator[str]:
    """Describe each place in which two pieces of plain data differ, with both values.

    Args:
        packed: The data in the evidence bundle.
        again: The data computed again from its runs.
        where: The path of the data within the whole; empty for the whole.
    """
    if isinstance(packed, dict) and isinstance(again, dict):
        for key in sorted({*packed, *again}):
            path = f"{where}.{key}" if where else str(key)
            yield from differences(packed.get(key, _ABSENT), again.get(key, _ABSENT), path)
    elif isinstance(packed, list) and isinstance(again, list) and len(packed) == len(again):
        for number, (left, right) in enumerate(zip(packed, again, strict=True)):
            yield from differences(left, right, f"{where}[{number}]")
    elif not _same(packed, again):
        yield f"{where}: {_short(packed)} in the pack, {_short(again)} from its runs"


def is_as_printed(held: bytes, value: Any) -> bool:
    """Say whether bytes are what a pack has of plain data. Two keys of one name, of which readers
    take one or the other, are then no way to show what the runs do not."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS  # of certificates
    try:
        return held in (printed(value).encode(), orjson.dumps(value, option=options) + b"\n")
    except orjson.JSONEncodeError:  # deeper than anything that is written here
        return False


def _same(left: Any, right: Any) -> bool:
    numbers = [value for value in (left, right) if isinstance(value, float)]
    if numbers and not isinstance(left, bool) and not isinstance(right, bool):
        both = isinstance(left, int | float) and isinstance(right, int | float)
        return both and math.isclose(left, right, rel_tol=_CLOSE, abs_tol=_NOTHING)
    return type(left) is type(right) and bool(left == right)


def _short(value: Any) -> str:
    text = "nothing" if value is _ABSENT else "null" if value is None else repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_SCRIPT = """\
#!/bin/sh
# Repeats every figure of this pack from its run folders, and says whether all are the same.
# It needs evenhand {version} (pip install evenhand=={version}), no network and no model.
# On another kind of processor the last digits of a number may differ: `runs pack verify` of
# the pack allows for that, and names each figure that differs by more.
set -eu
cd "$(dirname "$0")"
{light}have=$(evenhand --version)
if [ "$have" != "evenhand {version}" ]; then
    echo "this needs evenhand {version}, and here is: $have" >&2
    exit 2
fi
again=$(mktemp)
trap 'rm -f "$again"' EXIT
# Code 2 says that a run was not finished when it was packed.
{command} > "$again" || [ $? -eq 2 ]
if diff {figures} "$again"; then
    echo "all {count} figures are the same to the last digit"
else
    echo "the lines above differ: < is the pack, > what its runs give" >&2
    exit 1
fi
"""
_LIGHT = """\
# The run folders are not in this pack: put each where its list of checksums is.
for list in runs/*.sha256; do
    folder=${list%.sha256}
    [ -d "$folder" ] || { echo "put the run folder at $folder first" >&2; exit 2; }
    (cd "$folder" && sha256sum --check --quiet) < "$list"
done
"""


def script(dossier: CombinedReport, about: PackManifest) -> bytes:
    """Write the script."""
    command = ["evenhand", "report", *(run.run for run in about.runs), f"--title={dossier.title}"]
    command += ["--certificates", CERTIFICATES] if about.certificates else []
    command += ["--prices", PRICES] if about.prices else []
    text = _SCRIPT.format(
        version=about.evenhand,
        light=_LIGHT if about.light else "",
        command=shlex.join([*command, "--json"]),
        figures=FIGURES,
        count=f"{about.figures:,}",
    )
    return text.encode("utf-8", "replace")


def price_file(prices: PackedPrices) -> bytes:
    """Write prices as the file that `--prices` takes. A string of JSON is one of TOML too."""
    lines = [f"currency = {_quoted(prices.currency)}"]
    for name, price in prices.models.items():
        lines += [f"[models.{_quoted(name)}]"]
        lines += [f"{field} = {value!r}" for field, value in price.model_dump().items()]
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
