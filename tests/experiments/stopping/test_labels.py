"""A rate from a scorer on all texts and labels on a few: drawn, filled in, estimated."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evenhand.core.errors import UserError
from evenhand.experiments.labelling import draw, estimate, given_texts
from evenhand.findings.labelled import SampledText, labelled_rate
from evenhand.statistics.prediction_powered import chances_to_label, powered_mean
from tests.cli.conftest import Run, endpoint, evenhand
from tests.errors import raises_naming

__all__ = ["endpoint", "evenhand"]  # the fixtures


def _texts(rng: np.random.Generator, n: int, budget: int, right: float = 0.95) -> list[SampledText]:
    """Texts of which a third are 1, a judge that is right so often, and labels of those drawn."""
    truth = rng.random(n) < 1 / 3
    said = np.where(rng.random(n) < right, truth, ~truth) * 0.8 + 0.1
    chances = chances_to_label(np.sqrt(said * (1 - said)), budget)
    drawn = rng.random(n) < chances
    return [
        SampledText(id=str(place), cluster=place, prediction=float(said[place]),
                    chance=float(chances[place]), drawn=bool(drawn[place]),
                    label=int(truth[place]) if drawn[place] else None)
        for place in range(n)
    ]  # fmt: skip


def _without(texts: list[SampledText], lost: set[int]) -> list[SampledText]:
    """The same with the labels of these drawn texts gone."""
    places = [place for place, one in enumerate(texts) if one.drawn]
    gone = {places[one] for one in lost if one < len(places)}
    return [replace(t, label=None) if n in gone else t for n, t in enumerate(texts)]


def test_it_is_the_prediction_powered_mean_of_what_was_drawn() -> None:
    texts = _texts(np.random.default_rng(1), 600, 120)
    found = labelled_rate(texts, "judge")
    at = [place for place, one in enumerate(texts) if one.drawn]
    said = np.array([one.prediction for one in texts], dtype=float)
    labels = np.array([texts[n].label for n in at], dtype=float)
    direct = powered_mean(said, labels, at, chances=[texts[n].chance for n in at])
    assert (found.estimate, found.low, found.high) == pytest.approx(
        (direct.estimate, direct.low, direct.high)
    )
    assert found.labels_alone == pytest.approx(direct.labels_alone)
    assert found.width_ratio < 0.8
    assert (found.drawn, found.missing, found.labels) == (len(at), 0, len(at))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 50), lost=st.sets(st.integers(0, 40), max_size=4))
@example(seed=36, lost={1, 25})  # wider than labels alone, as it has to hold for both answers
def test_a_missing_label_never_narrows_the_interval_and_with_all_it_is_not_wider_than_labels_alone(
    seed: int, lost: set[int]
) -> None:
    texts = _texts(np.random.default_rng(seed), 200, 50, right=0.8)
    whole, found = labelled_rate(texts, "judge"), labelled_rate(_without(texts, lost), "judge")
    assert found.low <= whole.low + 1e-12
    assert found.high >= whole.high - 1e-12
    assert whole.width_ratio <= 1 + 1e-12
    assert (found.estimate is None) == bool(found.missing)


def test_below_twenty_labels_it_is_the_labels_alone() -> None:
    texts = _texts(np.random.default_rng(2), 300, 14)
    found = labelled_rate(texts, "judge")
    assert found.labels < 20
    assert (found.share_used, found.width_ratio) == (0.0, 1.0)
    assert (found.low, found.high) == found.labels_alone


def test_with_too_many_labels_missing_nothing_is_said() -> None:
    texts = _texts(np.random.default_rng(2), 300, 60)
    with raises_naming(UserError, "9 of", "missing"):
        labelled_rate(_without(texts, set(range(9))), "judge")


def _written(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "texts.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def _drawn(folder: Path, **more: Any) -> Path:
    texts = given_texts(_written(folder, [{"text": f"text {n}"} for n in range(300)]))
    said = [None if n == 7 else (n % 10) / 10 for n in range(300)]
    draw(texts, said, scorer="s", budget=60, seed=3, out=folder / "labels", **more)
    return folder / "labels"


def _fill(folder: Path, label: Any) -> list[dict[str, Any]]:
    path = folder / "labels.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        row["label"] = label(row)
    path.write_text("\n".join(map(json.dumps, rows)))
    return rows


def test_more_is_drawn_where_the_scorer_is_unsure_and_the_chances_are_kept(tmp_path: Path) -> None:
    folder = _drawn(tmp_path)
    rows = [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]
    said = [np.nan if n == 7 else np.sqrt(n % 10 / 10 * (1 - n % 10 / 10)) for n in range(300)]
    assert [row["chance"] for row in rows] == pytest.approx(chances_to_label(said, 60).tolist())
    assert rows[0]["chance"] == pytest.approx(0.75 * 60 / 300)
    assert rows[5]["chance"] > 1.4 * rows[0]["chance"]
    assert rows[7]["chance"] == max(row["chance"] for row in rows)
    drawn = [json.loads(line)["id"] for line in (folder / "labels.jsonl").read_text().splitlines()]
    assert drawn == [row["id"] for row in rows if row["drawn"]]


def test_what_does_not_fit_the_draw_is_refused(tmp_path: Path) -> None:
    folder = _drawn(tmp_path)
    with raises_naming(UserError, folder, "already"):
        _drawn(tmp_path)
    rows = _fill(folder, lambda row: 1)
    sheet = folder / "labels.jsonl"
    for bad, why in (
        ([*rows, {"id": "none", "label": 1}], "was not sampled"),
        ([*rows, rows[0]], "appears twice"),
        ([{**rows[0], "label": 2}], "label"),
    ):
        sheet.write_text("\n".join(map(json.dumps, bad)))
        with raises_naming(UserError, why):
            estimate(folder)
    sheet.write_text("\n".join(map(json.dumps, rows[:-9])))  # left out is missing
    with raises_naming(UserError, "9 of 54"):
        estimate(folder)
    sheet.write_text("\n".join(map(json.dumps, rows)))
    assert estimate(folder).estimate == pytest.approx(1.0)
    predictions = folder / "predictions.jsonl"
    predictions.write_text(predictions.read_text().replace('"chance":', '"chance": ', 1))
    with raises_naming(UserError, predictions, "changed"):
        estimate(folder)
    with raises_naming(UserError, "evenhand scorers sample"):
        estimate(tmp_path)


def test_the_two_commands_draw_and_estimate(evenhand: Run, tmp_path: Path) -> None:
    words = ("You are an idiot.", "Good morning.", "What a fool, an idiot.", "The train is late.")
    rows = [{"text": f"{words[n % 4]} {n}", "id": f"t{n}"} for n in range(400)]
    _written(tmp_path, rows)
    made = evenhand("scorers", "sample", "wordlist", "texts.jsonl", "--labels", "80",
                    "--out", "labels", "--json")  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["texts"] == 400
    early = evenhand("scorers", "estimate", "labels")
    assert early.returncode == 1
    assert "labels are missing" in " ".join(early.stderr.split())
    _fill(tmp_path / "labels", lambda row: int("idiot" in row["text"]))
    found = evenhand("scorers", "estimate", "labels", "--json")
    assert found.returncode == 0, found.stderr
    rate = json.loads(found.stdout)
    assert rate["low"] <= 0.5 <= rate["high"]
    assert rate["width_ratio"] <= 1
    told = evenhand("scorers", "estimate", "labels")
    assert "Label 1: " in told.stdout
    assert "labels alone" in told.stdout
