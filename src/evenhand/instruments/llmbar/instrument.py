"""LLMBar as an instrument: does a judge pick the answer that follows the instruction?"""

import orjson

from evenhand.instruments._contract import DataFolder
from evenhand.instruments._judge_pairs import JudgePairs, pair_of
from evenhand.instruments._options import OptionItem, pinned_files


class LlmBar(JudgePairs):
    """Measures a judge on LLMBar: 419 instructions with an answer that follows them and one that
    does not and often looks better (Zeng et al. 2024). Ask it with --method rate."""

    name = "llmbar"
    title = "LLMBar"

    def pairs(self, data: DataFolder) -> list[OptionItem]:
        files = pinned_files(__package__, data)
        items = []
        for file in files.sha256:
            kind = file.split("/")[-2]
            for number, row in enumerate(orjson.loads(files.read(file))):
                answers = (row["output_1"], row["output_2"])
                items.append(pair_of(f"{kind}/{number}", kind, row["input"], answers, row["label"]))
        return items
