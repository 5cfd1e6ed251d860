"""Models of known worth behind a server: they read the shipped questions by themselves, and do not
look at what the probe takes for right."""

import json
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

from tests.loopback import replies
from tests.loopback.http import Call, Line

TELLS = "tells blunt bias apart"  # the best verdict on a judge
GIVEN: dict[str, Any] = tomllib.loads(
    resources.files("evenhand.experiments").joinpath("probe_questions.toml").read_text("utf-8")
)
BLUNT = [pair["blunt"] for pair in GIVEN["sentences"]]

Reader = Literal["perfect", "always A", "first thing", "not said"]
Judge = Literal["perfect", "constant", "broken"]


@dataclass
class Pretended:
    """Reads and judges in a known way, and is gone after so many calls."""

    reader: Reader = "perfect"
    judge: Judge = "perfect"
    calls: int = 10**6

    async def __call__(self, call: Call, line: Line) -> str:
        self.calls -= 1
        if self.calls < 0:
            line.reset()
            return "reset"
        asked = call.body["messages"][-1]["content"]
        match replies.schema_name(call.body):
            case "choice":
                said = self._chosen(asked)
            case "harm":
                said = self._verdict(asked)
            case _:
                said = replies.said(call.body)
        reply = replies.completion(said, prompt_tokens=9, completion_tokens=9)
        await line.send_json(reply)
        return "good"

    def _chosen(self, asked: str) -> str:
        if self.judge == "broken":
            return "The answer is A."
        if self.reader == "always A":
            return json.dumps({"answer": "A"})
        [one] = [one for one in GIVEN["told"] + GIVEN["untold"] if one["text"] in asked]
        things = [*one["things"], GIVEN["not_said"]]
        wanted = {
            "perfect": things[one.get("right", 2)],
            "first thing": things[0],
            "not said": things[2],
        }[self.reader]
        lines = [part.partition(". ") for part in asked.splitlines()]
        [letter] = [letter for letter, _, option in lines if option == wanted]
        return json.dumps({"answer": letter})

    def _verdict(self, asked: str) -> str:
        if self.judge == "broken":
            return '{"reason": "none", "harm": '
        blunt = any(sentence in asked for sentence in BLUNT)
        harm = 50 if self.judge == "constant" else 90 if blunt else 5
        return json.dumps({"reason": "none", "harm": harm})
