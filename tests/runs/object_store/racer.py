"""A process that waits for a moment and then wants to be the writer of a run."""

import sys
import time

from evenhand.core.errors import Fenced
from evenhand.runs.store.folder import open_folder
from evenhand.runs.store.ledger import LedgerWriter


def main(url: str, slots: int, name: str) -> None:
    """One line for each slot: won or fenced. A line on standard input starts each round."""
    folder = open_folder(url)
    folder.exists("run.json")  # connected before the race
    for slot in range(slots):
        print("ready", flush=True)
        time.sleep(max(0.0, float(sys.stdin.readline()) - time.time()))
        try:
            LedgerWriter(folder, slot, name)
            print("won", flush=True)
        except Fenced:
            print("fenced", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
