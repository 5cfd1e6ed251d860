"""`evenhand annotate …` as a user runs it: sheets out, filled by known raters, sheets in, and
agreement as worked by hand."""

import json
from pathlib import Path

import pytest

from evenhand.core import Item
from evenhand.instruments.judge.probes import labelled
from evenhand.runs.store import RunReader
from evenhand.training.debates.debate import Debate
from evenhand.training.rating.texts import drawn
from tests.cli.conftest import Run, endpoint, evenhand
from tests.errors import assert_names
from tests.training.debates.repaired import written
from tests.training.rating.people import fill, told

__all__ = ["endpoint", "evenhand"]  # the fixtures

# Marks of three raters for four texts, for every question.
MARKS = {"one": (8, 8, 8), "two": (2, 2, 8), "three": (2, 2, 2), "four": (8, 8, 2)}
SHEETS = [f"sheets/rater-{n}/rater-{n}.csv" for n in (1, 2, 3)]
EXPORT = ("annotate", "export", "run", "--out", "sheets", "--raters", "3", "--sample", "4")
IMPORT = ("annotate", "import", *SHEETS, "--key", "sheets-key.json", "--out", "ratings")


def _fill(folder: Path) -> None:
    for place, sheet in enumerate(SHEETS):

        def mark(text: str, _question: str, place: int = place) -> str:
            return str(next(marks[place] for word, marks in MARKS.items() if f"say {word}" in text))

        fill(folder / sheet, mark)


@pytest.fixture
async def exported(tmp_path: Path, evenhand: Run) -> Path:
    await told(tmp_path / "run", [(f"Ask {word}?", f"I say {word}") for word in MARKS])
    ran = evenhand(*EXPORT)
    assert ran.returncode == 0, ran.stderr
    assert_names(ran.stdout, "4 texts", "3 raters")
    assert_names(ran.stdout, "evenhand annotate import", "--key sheets-key.json", "--out ratings")
    return tmp_path


def test_known_raters_have_the_kappa_and_alpha_worked_by_hand(
    evenhand: Run, exported: Path
) -> None:
    """Pairs that agree: 1, 1/3, 1, 1/3 of all, 2/3 on average; both marks are used for half of the
    texts, so chance is 1/2 and Fleiss' kappa (2/3 − 1/2)/(1/2) = 1/3, of bands as well. Alpha:
    coincidences of 8 with 2 are 4 of 12, expected 72/11, so 1 − 44/72 = 7/18. Raters 1 and 2 are
    alike: 1; 3 differs by 6 from them in two of four texts, as chance would: 0."""
    _fill(exported)
    ran = evenhand(*IMPORT)
    assert ran.returncode == 0, ran.stderr
    assert_names(ran.stdout, "36 of 36", "3 sheets")
    ran = evenhand("annotate", "agree", "ratings", "--json")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    for one in found["questions"]:
        values = {e["name"]: e["value"] for e in (*one["agreement"], *one["pairs"], *one["means"])}
        assert values == pytest.approx(
            {
                "alpha": 7 / 18,
                "fleiss": 1 / 3,
                "fleiss_bands": 1 / 3,
                "rater-1, rater-2": 1,
                "rater-1, rater-3": 0,
                "rater-2, rater-3": 0,
                "run": 5,
            }
        )
        for e in (*one["agreement"], *one["pairs"]):  # four items are too few to resample
            assert e["low"] is None
            assert_names(e["undefined"], "open", 15)
    # Means of texts 8, 4, 2, 6: their standard error is √(20/3/4), t with 3 df is 3.1824.
    mean = found["questions"][0]["means"][0]
    assert mean["high"] == pytest.approx(5 + 3.1824 * (20 / 3 / 4) ** 0.5, abs=1e-3)
    percent = found["questions"][0]["bias_percent"][0]
    assert (percent["value"], percent["low"]) == (50, pytest.approx(100 - 10 * mean["high"]))
    assert found["verdict"]["state"] == "inconclusive"
    shown = evenhand("annotate", "agree", "ratings", "--full").stdout
    assert shown.count("INCONCLUSIVE: agreement") == 2
    assert "rater-1, rater-3" in shown


def test_what_is_missing_is_listed_by_line_and_below_95_percent_the_command_ends_with_2(
    evenhand: Run, exported: Path
) -> None:
    _fill(exported)
    lines = (exported / SHEETS[0]).read_text().replace(",8,8,8", ",8,,8").splitlines(keepends=True)
    (exported / SHEETS[0]).write_text("".join(lines))
    ran = evenhand("annotate", "import", SHEETS[0], *IMPORT[5:])
    assert_names(ran.stdout, "10 of 12", "1 sheets")
    assert ran.stdout.count("communication: left empty") == 2
    assert_names(ran.stdout, "rater-2, rater-3")
    ran = evenhand("annotate", "agree", "ratings")
    assert ran.returncode == 2
    assert_names(ran.stdout, "83.3%", 12, "2 left")


async def test_a_judge_that_scored_the_statements_of_a_debate_is_held_against_people(
    evenhand: Run, tmp_path: Path
) -> None:
    """The referee gives a bias from 0 to 10, people a freedom from it: 10 minus the one is the
    other. Its labels for the audit of judges are people's marks for quality."""
    items = [Item(id="cats", prompt="cats", tags={"bias_type": "age", "roles": "a boy|a man"})]
    verdict = {"reasons": ["so", "so"], "ranking": [1, 2], "scores": [1, 8]}  # the man comes first
    lines = {"debater": ["I say one", "I say two"], "referee": [json.dumps(verdict)]}
    await written(tmp_path / "run", Debate(rounds=1), items, {"cats": lines})
    ran = evenhand("annotate", "export", "run", "--out", "sheets", "--raters", "3", "--sample", "2")
    assert ran.returncode == 0, ran.stderr
    _fill(tmp_path)
    assert evenhand(*IMPORT).returncode == 0
    options = ("--judge", "run", "--labels", "people.jsonl")
    ran = evenhand("annotate", "agree", "ratings", "--json", *options)
    assert ran.returncode == 0, ran.stderr
    (judged,) = json.loads(ran.stdout)["judge"]
    # People: 8 and 4. The judge: 10 − 8 = 2 of the boy's "one", 10 − 1 = 9 of the man's "two".
    assert judged["above"]["value"] == pytest.approx((2 - 8 + 9 - 4) / 2)
    assert (judged["check"]["name"], judged["check"]["state"]) == (
        "human_agreement",
        "inconclusive",
    )
    marked = {item.tags["human"] for item in labelled(tmp_path / "people.jsonl")}
    assert marked == {"8", "4"}
    shown = evenhand("annotate", "agree", "ratings", *options).stdout
    assert "? inconclusive  agreement" in shown


def test_an_error_says_what_to_do(evenhand: Run, exported: Path) -> None:
    for command, said in (
        (
            ("annotate", "agree", "nothing"),
            "evenhand annotate import SHEET.csv … --key KEY --out nothing",
        ),
        (
            ("annotate", "import", "a.csv", "--key", "nothing", "--out", "b"),
            "Could not read nothing",
        ),
        (("annotate", "export", "run", "run", "--out", "more"), "same run is named twice"),
        (EXPORT, "another folder with --out"),
        (("annotate", "export", "run", "--out", "more"), "--sample 4 or less"),
    ):
        ran = evenhand(*command)
        assert ran.returncode == 1
        assert said in " ".join(ran.stderr.split())


def test_without_a_seed_nobody_can_draw_the_names_again(exported: Path) -> None:
    """By a seed that everybody knows, a rater could tell which texts are from one run."""
    key = json.loads((exported / "sheets-key.json").read_bytes())
    by_zero = drawn([RunReader(exported / "run")], 4, 0).texts
    assert not {text["id"] for text in key["texts"]} & {text.id for text in by_zero}
    again = drawn([RunReader(exported / "run")], 4, key["seed"]).texts
    assert [text["id"] for text in key["texts"]] == [text.id for text in again]
