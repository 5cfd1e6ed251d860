"""How often audits of agents without bias are flagged, and how often a planted bias is.

    python -m bench.simulated.actions [--audits 400] [--profiles 24]

Every audit is of simulated answers to the scenario `triage`, read and judged by the instrument's
own scoring: a level, an argument of a tool, and whether a tool is called.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from evenhand.findings.ratios import SHOWN
from evenhand.instruments.actions.answers import read_values, with_comparisons
from evenhand.instruments.actions.measures import ActionContrasts
from evenhand.instruments.actions.scenario import read_scenario
from evenhand.instruments.counterfactual.contrasts import paired
from evenhand.instruments.counterfactual.tables import state_of

LABELS = ("a", "b")
OUTCOMES = read_scenario("triage").outcomes  # a level, an argument of a tool, a tool
Agent = Callable[[str, np.random.Generator], dict[str, Any]]


def _act(priority: str, minutes: float, *, relief: bool) -> dict[str, Any]:
    calls = [{"name": "place_in_queue", "arguments": {"minutes": minutes}}]
    return {
        "priority": priority,
        "tool_calls": calls + [{"name": "give_pain_relief", "arguments": {}}] * relief,
    }


def _usual(rng: np.random.Generator) -> tuple[str, float, bool]:
    """Noise that belongs to no group: asked again, the agent acts otherwise."""
    priority = str(rng.choice(["soon", "urgent"]))
    return priority, float(rng.integers(30, 90)), bool(rng.random() < 0.5)


def fair(label: str, rng: np.random.Generator) -> dict[str, Any]:
    """An agent that varies by chance alone."""
    del label
    priority, minutes, relief = _usual(rng)
    return _act(priority, minutes, relief=relief)


def later(label: str, rng: np.random.Generator) -> dict[str, Any]:
    """An agent that lets b wait 100 minutes longer."""
    priority, minutes, relief = _usual(rng)
    return _act(priority, minutes + 100 * (label == "b"), relief=relief)


def less_relief(label: str, rng: np.random.Generator) -> dict[str, Any]:
    """An agent that offers pain relief to a alone."""
    priority, minutes, _ = _usual(rng)
    return _act(priority, minutes, relief=label == "a")


def lower(label: str, rng: np.random.Generator) -> dict[str, Any]:
    """An agent that gives b a lower priority."""
    _, minutes, relief = _usual(rng)
    return _act("urgent" if label == "a" else "routine", minutes, relief=relief)


def rows_of(agent: Agent, profiles: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Give the recorded answers of an agent about every profile."""
    return [
        {"id": f"p{number}", "family": "group", "label": label, "role": role,
         "answer": agent(label, rng)}
        for number in range(profiles) for label in LABELS for role in ("group", "placebo")
    ]  # fmt: skip


def flagged(audits: int, profiles: int, agent: Agent) -> int:
    """Count the audits in which a difference is detected."""
    rng = np.random.default_rng(8)
    return sum(_flags(rows_of(agent, profiles, rng)) for _ in range(audits))


def _flags(lines: list[dict[str, Any]]) -> bool:
    others = paired(LABELS, "any")
    table = pl.DataFrame(
        [{"item_id": str(number), "cluster": line["id"], "part": "", "family": "group",
          "label": line["label"], "role": line["role"], "repeat": 1, "reason": None,
          "other": others[line["label"]], "tool_calls": None, "text": json.dumps(line["answer"])}
         for number, line in enumerate(lines)],
        schema_overrides={"reason": pl.String, "tool_calls": pl.String},
    )  # fmt: skip
    answers = with_comparisons(read_values(table, OUTCOMES), OUTCOMES)
    measured = ActionContrasts.of(answers, {"group": LABELS}, OUTCOMES)
    return any(state_of(contrast.found) == SHOWN for contrast in measured.signed)


def by_name(label: str, rng: np.random.Generator) -> dict[str, Any]:
    """An agent that acts by the name alone: another name of the same group changes as much."""
    name = f"{label}{rng.integers(1 << 30)}"
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:2])
    return _act(("soon", "urgent")[number % 2], 30 + number % 60, relief=number % 3 == 0)


def main() -> None:
    """Print how many audits of each agent are flagged."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=400)
    parser.add_argument("--profiles", type=int, default=24)
    options = parser.parse_args()
    for agent in (fair, by_name, later, less_relief, lower):
        count = flagged(options.audits, options.profiles, agent)
        sys.stdout.write(f"{agent.__name__}: {count} of {options.audits} flagged\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
