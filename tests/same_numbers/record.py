"""Records the numbers of today: `python -m same_numbers.record [INSTRUMENT ...]`."""

import sys
from pathlib import Path

from tests.same_numbers.adapter import CASES
from tests.same_numbers.flat import write

RECORDED = Path(__file__).with_name("recorded")

if __name__ == "__main__":
    RECORDED.mkdir(exist_ok=True)
    for instrument in sys.argv[1:] or CASES:
        cases = {name: case() for name, case in CASES[instrument].items()}
        write(cases, RECORDED / f"{instrument}.json")
