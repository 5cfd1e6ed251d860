"""EvalBiasBench as an instrument: is a judge taken in by length, detail or a false premise?"""

import orjson

from evenhand.instruments._contract import DataFolder, card_of
from evenhand.instruments._judge_pairs import JudgePairs, pair_of
from evenhand.instruments._options import OptionItem, pinned_files


class EvalBiasBench(JudgePairs):
    """Measures a judge on EvalBiasBench: 80 pairs whose worse answer is longer, more concrete or
    more familiar, or falls for the instruction's trap (Park et al. 2024). Ask it with --method
    rate."""

    name = "evalbiasbench"
    title = "EvalBiasBench"

    def pairs(self, data: DataFolder) -> list[OptionItem]:
        kinds = card_of(__package__)["kinds"]
        rows = orjson.loads(pinned_files(__package__, data).read("biasbench.json"))
        return [
            pair_of(
                f"{kinds[name][0]}/{number}",
                kinds[name][0],
                row["instruction"],
                (row["response1"], row["response2"]),
                int(row["label"]),
            )
            for name, entries in rows.items()
            for number, row in enumerate(entries)
        ]
