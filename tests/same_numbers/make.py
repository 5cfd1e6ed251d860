"""Makes what `kept/` holds anew, in another place: `python -m same_numbers.make FOLDER`."""

import asyncio
import sys
from pathlib import Path

from evenhand.scorers.shipped import offline
from same_numbers.made_audits import judge_runs, likelihood_runs, reward_inputs, scorer_inputs
from same_numbers.made_runs import bbq_runs, overcorrection_runs, rtp_runs, squad_runs


async def _all(out: Path) -> None:
    await bbq_runs(out / "bbq")
    await squad_runs(out / "squad")
    await rtp_runs(out / "rtp", offline())
    await overcorrection_runs(out / "overcorrection")
    await judge_runs(out / "judge")
    likelihood_runs(out / "likelihood")
    await scorer_inputs(out / "scorer", offline())
    reward_inputs(out / "reward")


if __name__ == "__main__":
    asyncio.run(_all(Path(sys.argv[1])))
