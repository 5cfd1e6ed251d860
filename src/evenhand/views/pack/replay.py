"""The script of a pack repeats all of its figures from its runs, without a network."""

import json
import shlex

from evenhand.findings.combined_report import CombinedReport
from evenhand.findings.pack_manifest import (
    CERTIFICATES,
    FIGURES,
    PRICES,
    PackedPrices,
    PackManifest,
)

_SCRIPT = """\
#!/bin/sh
# Repeats every figure of this pack from its run folders, and says whether all are the same.
# It needs evenhand {version} (pip install evenhand=={version}), no network and no model.
# On another kind of processor the last digits of a number may differ: `evenhand pack verify` of
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
