"""Self-consistency with fewer calls, played back: the same as asked anew, and nobody is asked."""

import json
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from evenhand.agents import Cast, Limits
from evenhand.methods.baselines.single_prompt import SelfConsistency
from evenhand.models import ModelRequest, ScriptedModel
from evenhand.runs.runners import replay_of

from .small_bbq import run_into

TEMPLATES = 15


def _says(request: ModelRequest) -> str:
    """Another letter for each occurrence and item; one reply in fourteen cannot be read, and each
    of those says something else."""
    drawn = (request.seed or 0) % 14
    if drawn == 0:
        return f"I would rather not, {request.seed}."
    return json.dumps({"reasoning": "so it is", "answer": "ABC"[drawn % 3]})


@pytest.mark.parametrize("calls", [1, 2, 5])
async def test_a_vote_of_fewer_calls_played_back_equals_one_asked_anew(
    tmp_path: Path, calls: int
) -> None:
    model = ScriptedModel(_says, seconds=0.001)
    full = await run_into(
        tmp_path / "full", SelfConsistency(calls=6), Cast(model), TEMPLATES, Limits(calls=12)
    )
    asked = model.requests
    assert asked > 6 * 2 * TEMPLATES  # some were asked for once more
    fewer, limits = SelfConsistency(calls=calls), Limits(calls=2 * calls)
    cast = replay_of(tmp_path / "full")
    replayed = await run_into(tmp_path / "replayed", fewer, cast, TEMPLATES, limits)
    assert model.requests == asked  # nobody was asked
    again = await run_into(
        tmp_path / "again", fewer, replay_of(tmp_path / "full"), TEMPLATES, limits
    )
    fresh = await run_into(tmp_path / "fresh", fewer, Cast(model), TEMPLATES, limits)

    rows = replayed.results().collect()
    assert_frame_equal(rows, fresh.results().collect())
    assert_frame_equal(rows, again.results().collect())
    assert rows["status"].to_list() == ["answered"] * 2 * TEMPLATES
    assert min(rows["calls"]) == calls
    assert full.record.cast == replayed.record.cast
