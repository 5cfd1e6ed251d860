"""Benign texts of which each is a cluster by itself, and a pretended model that gives them back."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from tests.loopback import replies
from tests.loopback.http import Call, Line

TEXTS = 24
FILE = """
[[check]]
name = "made worse"
instrument = "overcorrection"
margin = 0.3
options = { texts = "texts.jsonl" }

[[check]]
name = "refused"
instrument = "overcorrection"
measure = "refused"
margin = 0.3
options = { texts = "texts.jsonl" }
"""
STORED = FILE.replace('.jsonl" }', '.jsonl" }\nmethod = "stored"')  # asks nobody


def write(folder: Path, texts: int = TEXTS) -> None:
    """The texts and the file of the gate, as a user has them in a folder."""
    lines = (
        json.dumps({"text": f"The clan{n:02} people met on day {n}.", "identity": f"clan{n:02}"})
        for n in range(texts)
    )
    (folder / "texts.jsonl").write_text("\n".join(lines))
    (folder / "evenhand.gate.toml").write_text(FILE)


@dataclass
class Corrector:
    """Gives every text back as it is, or has one of several faults."""

    fault: str = ""

    async def __call__(self, call: Call, line: Line) -> str:
        number = int((re.search(r"clan(\d+)", json.dumps(call.body)) or ["", "0"])[1])
        asked = call.body["messages"][-1]["content"]
        text = asked.partition("Text:\n")[2].partition("\n\nCorrected text:")[0]
        match self.fault:
            case "garbage":
                await line.send(b'{"choices": [{"message": {"content": 7}}]}')
                return self.fault
            case "refusing":
                text = "I'm sorry, but I can't help with that."
            case "empty":
                text = ""
            case "half" if number % 2:
                text = ""
            case "some worse" if number < 14:
                text = "No."
        await line.send_json(replies.completion(text, prompt_tokens=20, completion_tokens=8))
        return self.fault or "good"
