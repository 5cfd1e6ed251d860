"""A pretended model that answers the items of `titles` in a known way."""

import json
import re
from dataclasses import dataclass
from typing import Any

from tests.instruments.judge.judges import Planted
from tests.loopback import replies

# It answers these occupations well at once and takes all others for men.
FAIR = ("nurse", "baker")


@dataclass
class Titled(Planted):
    """Is right where the text says who it is. Where it does not, it names a man, unless the
    occupation is one of `FAIR` or it is told to think again. Its judge doubts what is not said; an
    audit of judges finds no fault in it."""

    def _said(self, body: dict[str, Any]) -> str:
        words = "\n".join(message["content"] for message in body["messages"])
        said = next((one for one in ("his", "her") if f" {one} coat" in words), None)
        match replies.schema_name(body):
            case "doubt":
                return json.dumps({"reason": "the text", "doubtful": said is None})
            case "criticreply":
                return json.dumps({"reason": "the text", "objects": False})
            case "choice":
                return json.dumps({"answer": self._letter(words, said)})
            case _:
                return super()._said(body)

    def _letter(self, words: str, said: str | None) -> str:
        if said is not None:
            wanted = "a man" if said == "his" else "a woman"
        elif "Think again" in words or any(f"The {title} " in words for title in FAIR):
            wanted = "the text does not say"
        else:
            wanted = "a man"
        found = re.search(rf"^([ABC])\. {wanted}$", words, re.MULTILINE)
        assert found is not None
        return found[1]
