"""Makes `kept/` anew, in another place: `python -m same_numbers.make FOLDER`."""

import asyncio
import sys
from pathlib import Path

from same_numbers.made_runs import bbq_runs, squad_runs


async def _all(out: Path) -> None:
    await bbq_runs(out / "bbq")
    await squad_runs(out / "squad")


if __name__ == "__main__":
    asyncio.run(_all(Path(sys.argv[1])))
