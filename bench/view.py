"""`runs view` on a run of a million items: how soon is the first page there, how long does a
filter take, and how much memory does the server have?

A made-up run is written as an ordinary run folder, with texts that are all different. Then the
command itself is started, and asked over HTTP as a browser asks it.

    python -m bench.view --rows 1000000
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc

from bench.findings_rows import PART, record_of, table_of, write_part
from evenhand.runs.store import ledger, tables
from evenhand.runs.store.folder import open_folder

CATEGORIES = [f"category {number}" for number in range(11)]
WORDS = "the a nurse pilot teacher neighbour said that was kind late calm near old new door".split()
RARE = "heliotrope"  # in one answer of a thousand
PHRASES = 4_096


def write_run(
    folder: Path, rows: int, *, seed: int, part: int = PART, failing: float = 0.01
) -> None:
    """A run of a method with two drafts: some 750 characters of text an item, all different."""
    place = open_folder(folder)
    place.create("run.json", record_of(rows).to_bytes())
    log = ledger.LedgerWriter(place, 0, "bench")
    rng = np.random.default_rng(seed)
    picked = rng.integers(len(WORDS), size=(PHRASES, 16))
    phrases = pa.array([" ".join(WORDS[word] for word in row) for row in picked])
    for number, start in enumerate(range(0, rows, part)):
        size = min(part, rows - start)
        write_part(place, log, number, *_tables(start, size, phrases, rng, failing))


def _tables(
    start: int, size: int, phrases: pa.Array, rng: np.random.Generator, failing: float
) -> tuple[pa.Table, pa.Table]:
    position = np.arange(start, start + size)
    item = pc.binary_join_element_wise("item", pa.array(position).cast(pa.string()), "/")
    ends = pa.array(np.where(rng.random(size) < 0.001, f"{RARE}.", "end."))

    def text() -> pa.Array:
        drawn = (phrases.take(pa.array(rng.integers(PHRASES, size=size))) for _ in range(3))
        return pc.binary_join_element_wise(*drawn, " ")

    prompt, first, last = text(), text(), pc.binary_join_element_wise(text(), ends, " ")
    failed = rng.random(size) < failing
    scores = [_scores(rng.random(size)) for _ in range(2)]
    drafts = _in_lists(
        pa.StructArray.from_arrays(
            [
                _both(first, last),
                pa.nulls(2 * size, pa.int64()),
                pa.nulls(2 * size, pa.string()),
                _both(*scores),
            ],
            names=["text", "choice", "reasoning", "scores"],
        ),
        2,
    )
    results = {
        "position": position,
        "item_id": item,
        "status": np.where(failed, "failed", "answered"),
        "reason": pa.array(np.full(size, "model_busy"), mask=~failed),
        "text": pc.if_else(pa.array(failed), pa.scalar(None, pa.string()), last),
        "stopped": pa.array(
            np.where(rng.random(size) < 0.8, "accepted", "max_iterations"), mask=failed
        ),
        "changed": pa.array(np.ones(size, bool), mask=failed),
        "answer_before": first,
        "scores_before": scores[0],
        "scores_after": scores[1],
        "drafts": drafts,
        "calls": np.ones(size, int),
        "prompt": prompt,
        "tags": _tags(position),
    }
    message = pa.StructArray.from_arrays(
        [pa.array(["user"] * size), prompt], names=["role", "content"]
    )
    turns = {
        "position": position,
        "item_id": item,
        "index": np.zeros(size, int),
        "role": ["solver"] * size,
        "prompt": ["baselines/default@1"] * size,
        "model": ["made up"] * size,
        "messages": _in_lists(message, 1),
        "seconds": np.full(size, 0.5),
        "attempts": np.ones(size, int),
        "texts": _in_lists(last, 1),
        "finish": _in_lists(pa.array(["stop"] * size), 1),
    }
    return table_of(results, size, tables.RESULTS), table_of(turns, size, tables.TURNS)


def _both(first: pa.Array, last: pa.Array) -> pa.Array:
    """First and last draft of each item, one after the other."""
    size = len(first)
    turned = np.arange(2 * size).reshape(2, size).T.ravel()
    return pa.concat_arrays([_plain(first), _plain(last)]).take(pa.array(turned))


def _plain(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _in_lists(values: pa.Array, each: int) -> pa.ListArray:
    values = _plain(values)
    return pa.ListArray.from_arrays(pa.array(range(0, len(values) + 1, each), pa.int32()), values)


def _scores(values: np.ndarray) -> pa.Array:
    names = pa.array(["harm"] * len(values))
    named = pa.StructArray.from_arrays([names, pa.array(values.round(2))], names=["name", "value"])
    return _in_lists(named, 1)


def _tags(position: np.ndarray) -> pa.Array:
    size = len(position)
    values = np.stack(
        [
            np.array(CATEGORIES)[position // 7 % len(CATEGORIES)],
            np.where(position % 2 == 0, "ambig", "disambig"),
            np.char.add("template ", (position // 4 % 343).astype(str)),
        ],
        axis=1,
    ).ravel()
    names = np.tile(["category", "condition", "template"], size)
    named = pa.StructArray.from_arrays([pa.array(names), pa.array(values)], names=["name", "value"])
    return _in_lists(named, 3)


class Viewer:
    """The command in a process of its own, asked as a browser asks it."""

    def __init__(self, *arguments: str) -> None:
        began = time.perf_counter()
        main = "from evenhand.cli import main; main()"
        command = [sys.executable, "-c", main, "runs", "view", *arguments, "--no-open"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        link = urlsplit(self._process.stdout.readline().strip())
        self.start = time.perf_counter() - began
        self._connection = HTTPConnection(link.netloc)
        self._connection.request("GET", f"/?{link.query}")
        answer = self._connection.getresponse()
        answer.read()
        self._cookie = str(answer.headers["set-cookie"]).partition(";")[0]

    def seconds(self, **filters: str) -> tuple[float, str]:
        """How long a page of the list takes, and the page."""
        began = time.perf_counter()
        self._connection.request("GET", f"/?{urlencode(filters)}", headers={"cookie": self._cookie})
        answer = self._connection.getresponse()
        page = answer.read().decode()
        assert answer.status == 200, page
        return time.perf_counter() - began, page

    def megabytes(self) -> float:
        """The most memory that the process has had."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def cpu(self) -> float:
        """Seconds of CPU that the process has taken."""
        spent = psutil.Process(self._process.pid).cpu_times()
        return float(spent.user + spent.system)

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()


FILTERS: dict[str, dict[str, str]] = {
    "a word": {"text": RARE},
    "a word of the first draft": {"draft": RARE},
    "a score": {"score": "harm", "least": "0.9"},
    "a category": {"tag.category": CATEGORIES[3]},
    "a reason": {"ended": "model_busy"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where the run is; made if it is empty")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary) / "run"
        if not (folder / "run.json").exists():
            write_run(folder, given.rows, seed=0)
        viewer = Viewer(str(folder))
        try:
            _measure(viewer, given.rows)
        finally:
            viewer.end()


def _measure(viewer: Viewer, rows: int) -> None:
    began = time.perf_counter()
    first, page = viewer.seconds()
    assert f"of {rows:,}" in page
    last, _ = viewer.seconds(page=str(rows // 25))
    while "still being gathered" in page:
        _, page = viewer.seconds()
    gathered = time.perf_counter() - began
    print(f"start {viewer.start:.2f} s, first page {first:.2f} s, last page {last:.2f} s, "
          f"all filters are offered {gathered:.1f} s after the first request")  # fmt: skip
    took = {}
    for name, filters in FILTERS.items():
        spent = viewer.cpu()
        took[name], page = viewer.seconds(**filters)
        found = re.search(r"of ([\d,]+)</span>", page)
        print(f"{name}: {took[name]:.2f} s ({viewer.cpu() - spent:.1f} s of CPU), "
              f"{found[1] if found else 0} items")  # fmt: skip
    print(f"RESULT view_first_s={first:.2f} view_filter_s={max(took.values()):.2f} "
          f"view_rss_mb={viewer.megabytes():.0f}")  # fmt: skip


if __name__ == "__main__":
    main()
