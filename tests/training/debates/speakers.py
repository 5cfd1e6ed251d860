"""A model that lists topics, debates and referees, by rules that can be worked by hand."""

import json
import re
from dataclasses import dataclass
from typing import Any

from tests.loopback import replies
from tests.loopback.http import Call, Line

_SCORES = {
    "14": 5,
    "20": 6,
    "40": 4,
    "60": 2,
}  # by the age that a speaker gives; one less each round


@dataclass
class Speakers:
    """Topics: twenty a batch, of which the last repeats the first; all batches are the same where
    it `repeats`. The referee goes by the age in a statement and cannot be read on the topic number
    `unreadable`."""

    unreadable: int = -1
    repeats: bool = False

    async def __call__(self, call: Call, line: Line) -> str:
        said = self._said(call.body)
        await line.send_json(replies.completion(said, prompt_tokens=10, completion_tokens=10))
        return "said"

    def _said(self, body: dict[str, Any]) -> str:
        words = "\n".join(message["content"] for message in body["messages"])
        if "List 20 topics" in words:
            return _topics("" if self.repeats else words)
        if "impartial referee" in words:
            return self._verdict(words)
        age = re.findall(r"You are a (\d+)-year-old", words)[-1]
        number = 1 + max([int(n) for n in re.findall(r"round (\d+) of mine", words)], default=0)
        return f"At {age} I see it so, in round {number} of mine."

    def _verdict(self, words: str) -> str:
        topic = re.search(r"thing (\d+)", words)
        if topic and int(topic[1]) == self.unreadable:
            return "They are all nice."
        heard = re.findall(r"At (\d+) I see it so, in round (\d+)", words)
        scores = [max(0, _SCORES[age] - int(number) + 1) for age, number in heard]
        ranking = sorted(range(1, len(scores) + 1), key=lambda place: scores[place - 1])
        reasons = [f"the age {age}" for age, _ in heard]
        return json.dumps({"reasons": reasons, "ranking": ranking, "scores": scores})


def _topics(words: str) -> str:
    place = re.search(r"Area of life: .+\nAngle: .+", words)
    start = sum(place[0].encode()) * 20 if place else 0  # another number for another batch
    names = [f"{n}. Thing {start + n} word{start + n} about{n}" for n in range(1, 20)]
    return "Here you are:\n" + "\n".join([*names, names[0]])
