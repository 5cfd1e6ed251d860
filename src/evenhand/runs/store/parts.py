"""A part of a run is two Parquet files and the entry that the ledger gets for them."""

import hashlib
from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa

from evenhand.core.errors import CorruptRun, StoreError
from evenhand.runs.store import ledger, tables
from evenhand.runs.store.folder import Folder

PART_ITEMS = 4096
PART_BYTES = 16 * 1024 * 1024


@dataclass(slots=True)
class Pending:
    """The finished items of the part to come, as journal lines."""

    results: list[bytes] = field(default_factory=list)
    turns: list[bytes] = field(default_factory=list)
    size: int = 0  # bytes

    @property
    def full(self) -> bool:
        return len(self.results) >= PART_ITEMS or self.size >= PART_BYTES

    def add(self, result: bytes, turns: list[bytes]) -> None:
        self.results.append(result)
        self.turns.extend(turns)
        self.size += len(result) + sum(map(len, turns))


def write_part(folder: Folder, name: str, pending: Pending) -> ledger.CommittedPart:
    """Write both files. They count when the ledger names them, and not before."""
    turns_file, turns = _write(folder, f"turns/{name}.parquet", pending.turns, tables.TURNS)
    try:
        results_file, results = _write(
            folder, f"results/{name}.parquet", pending.results, tables.RESULTS
        )
    except StoreError:  # a full disk should not be fuller after each attempt
        folder.remove(turns_file.name)
        raise
    return _part(results_file, turns_file, results, turns)


def _write(
    folder: Folder, name: str, lines: list[bytes], schema: pa.Schema
) -> tuple[ledger.PartFile, pa.Table]:
    data, table = tables.to_parquet(lines, schema)
    try:
        folder.create(name, data)
    except FileExistsError:  # no two writers have the same name for a part
        raise CorruptRun(f"{folder.root}/{name} is there before its time: move it away") from None
    sha256 = hashlib.sha256(data).hexdigest()
    return ledger.PartFile(name=name, sha256=sha256, bytes=len(data), rows=len(table)), table


def _part(
    results_file: ledger.PartFile, turns_file: ledger.PartFile, results: pa.Table, turns: pa.Table
) -> ledger.CommittedPart:
    positions = results.column("position").to_pylist()
    if len(set(positions)) != len(positions):
        raise CorruptRun(f"{results_file.name} would hold an item twice")
    reasons = Counter(reason for reason in results.column("reason").to_pylist() if reason)
    outcomes = Counter(outcome for outcome in results.column("outcome").to_pylist() if outcome)
    prompt_tokens = results.column("prompt_tokens")
    return ledger.CommittedPart(
        results=results_file,
        turns=turns_file,
        positions=ledger.ranges(positions),
        answered=len(positions) - sum(reasons.values()),
        failed=dict(sorted(reasons.items())),
        changed=sum(1 for changed in results.column("changed").to_pylist() if changed),
        calls=_total(results.column("calls")),
        prompt_tokens=_total(prompt_tokens),
        completion_tokens=_total(results.column("completion_tokens")),
        tokens_unknown=prompt_tokens.null_count,
        tags_taken_off=_total(results.column("tags_taken_off")),
        outcomes=dict(sorted(outcomes.items())),
        adapted=_adapted(turns),
        thinking_tokens=_total(turns.column("thinking_tokens")),
    )


def _adapted(turns: pa.Table) -> dict[str, dict[str, int]]:
    """Count the calls in which a model did not get what was asked of it, by model and by what."""
    counts: dict[str, Counter[str]] = {}
    adapted = turns.column("adapted").to_pylist()
    if any(adapted):
        for model, words in zip(turns.column("model").to_pylist(), adapted, strict=True):
            counts.setdefault(model, Counter()).update(words.split())
    return {model: dict(sorted(counts[model].items())) for model in sorted(counts) if counts[model]}


def _total(column: pa.ChunkedArray) -> int:
    return sum(value for value in column.to_pylist() if value is not None)
