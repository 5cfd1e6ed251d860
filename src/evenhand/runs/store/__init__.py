"""A run folder holds part files and a ledger; from it a run is resumed and replayed.

    RUN/
      run.json                    what was planned; written before the first call, never edited
      results/<part>.parquet      one row per item
      turns/<part>.parquet        everything that was said for those items
      ledger/<slot>.json          what is committed: one numbered file per part, with checksums
      ledger/compact-<a>-<b>.jsonl  the same of 1,024 at a time, once there are so many
      journal/<writer>-<n>.log    turns of items that are not committed yet
      lock                        held by the process that writes
      status.json                 how far it is; nothing rests on it

An item counts when its part is in the ledger. Nothing is overwritten; only spent journals go, and
entries that a compact file holds.
"""

from evenhand.runs.store.reader import EqualCalls, RunReader, RunTape
from evenhand.runs.store.run_record import RunRecord
from evenhand.runs.store.writer import RunWriter

__all__ = ["EqualCalls", "RunReader", "RunRecord", "RunTape", "RunWriter"]
