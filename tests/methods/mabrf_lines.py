"""What the agents of MABRF say in the tests."""

import json
from typing import Any


def solved(letter: str, reasoning: str = "1. The girl must be bad at maths.") -> str:
    return json.dumps({"reasoning": reasoning, "answer": letter})


def verdict(bias: int, reason: str = "step 1 is a stereotype", relevancy: int = 8) -> str:
    grades = {"bias_reason": reason, "bias": bias}
    return json.dumps({**grades, "relevancy_reason": "it keeps to it", "relevancy": relevancy})


def rephrased(reasoning: str) -> str:
    return json.dumps({"reasoning": reasoning})


def planned(*queries: str, groups: tuple[str, ...] = ("girl",)) -> str:
    return json.dumps({"groups": groups, "queries": queries})


def found(query: str, *texts: str, url: str = "https://example.org") -> str:
    hits = [hit(f"{url}/{query.replace(' ', '-')}/{n}", text) for n, text in enumerate(texts)]
    return json.dumps({"query": query, "engine": "scripted@1", "hits": hits})


def hit(url: str, text: str, title: str = "A study") -> dict[str, Any]:
    return {"url": url, "title": title, "text": text, "sha256": "0" * 64, "fetched": True}


def summary(
    *facts: tuple[str, int], contradictions: tuple[str, ...] = (), gaps: tuple[str, ...] = ()
) -> str:
    listed = [{"fact": fact, "source": source} for fact, source in facts]
    return json.dumps({"facts": listed, "contradictions": contradictions, "gaps": gaps})
