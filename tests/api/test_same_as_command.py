"""A function of Python gives what the command of its name gives."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.models import ModelReply, ModelRequest
from evenhand.scorers import Unscored
from evenhand.testing import any_reply
from evenhand.views.files import plain
from tests.cli.conftest import Run, endpoint, evenhand
from tests.errors import assert_names, raises_naming
from tests.instruments.harm.test_own_harm import CONFIG, VAGUE, Keen, lines_of_examples
from tests.instruments.overcorrection.editor import Editor, write_texts
from tests.loopback.process import RemoteServer, in_own_process
from tests.training.debates.speakers import Speakers

__all__ = ["endpoint", "evenhand"]  # the fixtures


def printed(evenhand: Run, *arguments: str) -> Any:
    """The JSON that a command prints."""
    ran = evenhand(*arguments, "--json")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


# -- scorers --------------------------------------------------------------------------------------


def test_the_list_of_scorers_is_that_of_the_command(evenhand: Run) -> None:
    lines = [
        {"name": line.name, "kind": line.kind, **({"says": line.says} if line.says else {})}
        for line in eh.scorers_list()
    ]
    assert lines == printed(evenhand, "scorers", "list")
    assert [line["name"] for line in lines][:4] == ["offline", "staged", "wordlist", "regard"]


def test_texts_get_the_scores_of_the_command(evenhand: Run) -> None:
    texts = ["You idiot.", "Good day."]
    scored = eh.scorers_score("wordlist", texts)
    assert scored.values("toxicity") == [0.45, 0.0]
    assert scored.coverage == 1.0
    rows = printed(evenhand, "scorers", "score", "wordlist", *texts)
    assert [row["scores"]["toxicity"] for row in rows] == [0.45, 0.0]


async def test_a_text_without_a_score_is_missing_and_no_text_is_refused() -> None:
    scored = await eh.aio.scorers_score("wordlist", ["Good day.", " "])
    assert scored.coverage == 0.5
    assert isinstance(scored.outcomes[1], Unscored)
    with raises_naming(eh.UserError, "no texts"):
        await eh.aio.scorers_score("wordlist", [])
    nothing: Any = None
    with raises_naming(eh.UserError, "no texts"):
        await eh.aio.scorers_score("wordlist", nothing)
    with raises_naming(eh.UserError, "text 2", "NoneType"):
        await eh.aio.scorers_score("wordlist", ["Good day.", nothing])


def test_the_judge_of_support_has_the_auc_that_the_command_prints(
    evenhand: Run, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_DATA", "/nowhere")
    audited = eh.scorers_audit_support(sample=1, data=data_folder)
    ran = evenhand(
        *("scorers", "audit-support", "--sample", "1", "--json"), EVENHAND_DATA=str(data_folder)
    )
    assert json.loads(ran.stdout) == json.loads(json.dumps(plain(audited.to_dict())))


# -- debates --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def speakers() -> Iterator[RemoteServer]:
    with in_own_process(Speakers()) as server:
        yield server


def speaker(server: RemoteServer) -> eh.Endpoint:
    return eh.Endpoint(server.url, model="faulty")


def test_topics_are_those_of_the_command_byte_for_byte(
    evenhand: Run, speakers: RemoteServer, tmp_path: Path
) -> None:
    made = eh.train_debate_topics(
        tmp_path / "mine.jsonl", types=["age"], count=25, model=speaker(speakers), seed=1
    )
    numbers = {"listed": 40, "duplicates": 2, "topics": 25, "wanted": 25}
    assert (made.numbers(), made.short()) == ({"age": numbers}, [])
    ran = evenhand(
        *("train", "debate", "topics", "--types", "age", "--count", "25", "--out", "theirs.jsonl"),
        *("--seed", "1"),
        EVENHAND_BASE_URL=speakers.url,
    )
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "mine.jsonl").read_bytes() == (tmp_path / "theirs.jsonl").read_bytes()


def test_a_list_of_ones_own_needs_no_model_and_a_cap_writes_no_topics(
    speakers: RemoteServer, tmp_path: Path
) -> None:
    (tmp_path / "list.txt").write_text("1. Night buses\n2. night bus\n3. School meals\n")
    made = eh.train_debate_topics(
        tmp_path / "own.jsonl", types=["age"], topics=tmp_path / "list.txt"
    )
    assert made.chosen() == {"age": ["Night buses", "School meals"]}
    for taken in ("own.jsonl", "list.txt"):
        with raises_naming(eh.UserError, taken, "already exists"):
            eh.train_debate_topics(tmp_path / taken, topics=tmp_path / "list.txt")
    assert (tmp_path / "list.txt").read_text().startswith("1. Night buses")
    with raises_naming(eh.UserError, "--max-calls", "higher cap"):
        eh.train_debate_topics(
            tmp_path / "few.jsonl", types=["age"], model=speaker(speakers), max_calls=1
        )
    assert not (tmp_path / "few.jsonl").exists()


def test_a_sweep_has_the_pairs_that_the_command_makes(
    evenhand: Run, speakers: RemoteServer, tmp_path: Path
) -> None:
    (tmp_path / "plan.toml").write_text(
        "[usual]\nroles = 3\nrounds = 2\ntopics = 2\npairs = 8\n[vary]\nroles = [2]\n"
    )
    tags = {"bias_type": "age", "roles": "a 20-year-old|a 40-year-old|a 60-year-old"}
    rows = [{"id": str(n), "prompt": f"thing {n}", "tags": tags} for n in (1, 2)]
    (tmp_path / "topics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    swept = eh.train_debate_sweep(
        tmp_path / "topics.jsonl",
        plan=tmp_path / "plan.toml",
        model=speaker(speakers),
        out=tmp_path / "mine",
    )
    assert [(arm.name, arm.statements, arm.train_pairs) for arm in swept.arms] == [
        ("usual", 12, 8),
        ("roles-2", 8, 3),
    ]
    ran = evenhand(
        *(
            "train",
            "debate",
            "sweep",
            "topics.jsonl",
            "--plan",
            "plan.toml",
            "--out",
            "theirs",
            "--json",
        ),
        EVENHAND_BASE_URL=speakers.url,
    )
    theirs = json.loads(ran.stdout)["arms"]
    assert [(arm["arm"], arm["statements"], arm["train_pairs"]) for arm in theirs] == [
        (arm.name, arm.statements, arm.train_pairs) for arm in swept.arms
    ]


# -- tables of papers -----------------------------------------------------------------------------

FIGURE: dict[str, Any] = {"sample": {"per_type": 1}, "seed": 1}


def test_the_list_and_the_page_of_the_papers_are_those_of_the_command(evenhand: Run) -> None:
    listed = eh.reproduce_list()
    assert plain(listed.to_dict()) == printed(evenhand, "dev", "reproduce", "list")
    for paper in ("rldf", None):
        named = () if paper is None else (paper,)
        page = evenhand("dev", "reproduce", "page", *named, "--tables", "none").stdout
        assert eh.reproduce_page(paper, tables="none") == page


def test_a_table_that_python_makes_is_the_one_that_the_command_shows(
    evenhand: Run, tmp_path: Path
) -> None:
    model = eh.ScriptedModel(any_reply, name="mine")
    with raises_naming(eh.UserError, "--max-calls", "higher cap"):
        eh.reproduce_rldf("figure1", model=model, out=tmp_path / "papers", max_calls=20, **FIGURE)
    (table,) = eh.reproduce_rldf("figure1", model=model, out=tmp_path / "papers", **FIGURE)
    assert [ours.model for ours in table.ours] == ["mine"]
    assert table.runs[0].items == 45
    shown = evenhand("dev", "reproduce", "rldf", "figure1", "--show", "--out", "papers", "--json")
    assert json.loads(shown.stdout)["tables"] == [plain(table.to_dict())]
    (again,) = eh.reproduce_rldf(
        "figure1", out=tmp_path / "again", replay=tmp_path / "papers", **FIGURE
    )
    assert plain(again.to_dict()) == plain(table.to_dict())


def test_models_stand_side_by_side_and_trained_weights_are_of_one(tmp_path: Path) -> None:
    models = {name: eh.ScriptedModel(any_reply, name=name) for name in ("one", "two")}
    (table,) = eh.reproduce_rldf("figure1", model=models, out=tmp_path, **FIGURE)
    assert [ours.model for ours in table.ours] == ["one", "two"]
    with raises_naming(eh.UserError, "Trained weights"):
        eh.reproduce_rldf("table3", model=models, trained={"sft": models["one"]}, out=tmp_path)
    (shown,) = eh.reproduce_rldf(
        "figure1", model=models, trained=None, out=tmp_path, **{**FIGURE, "show": True}
    )
    assert shown.rows == table.rows


def test_trained_weights_play_their_own_runs(tmp_path: Path) -> None:
    asked = []

    def weights(request: ModelRequest) -> str | ModelReply:
        asked.append(request)
        return any_reply(request)

    (table,) = eh.reproduce_rldf(
        "table3",
        model=eh.ScriptedModel(any_reply, name="base"),
        trained={"sft": eh.ScriptedModel(weights, name="tuned")},
        only=["st-sft"],
        sample={"per_type": 1},
        out=tmp_path,
    )
    assert asked
    assert {run.run: run.items for run in table.runs} == {"st-sft": 15}
    with raises_naming(eh.UserError, "'tuned'", "sft"):
        eh.reproduce_rldf("table3", trained={"tuned": eh.ScriptedModel(weights)}, out=tmp_path)


@pytest.mark.parametrize("setting", [{"system": "Be kind."}, {"dedupe": True}])
def test_what_a_recipe_decides_is_refused(setting: dict[str, Any], tmp_path: Path) -> None:
    (name,) = setting
    with raises_naming(eh.UserError, f"'{name}'"):
        eh.reproduce_rldf("figure1", model=eh.ScriptedModel(any_reply), out=tmp_path, **setting)


def test_a_table_without_a_model_says_how_to_give_one(tmp_path: Path) -> None:
    for reproduce in (eh.reproduce_stardtox, eh.reproduce_mabrf, eh.reproduce_malibu):
        with raises_naming(eh.UserError, "evenhand.Endpoint"):
            reproduce(out=tmp_path)


# -- what methods make worse ----------------------------------------------------------------------


def test_texts_are_made_worse_as_the_command_counts_them(evenhand: Run, tmp_path: Path) -> None:
    texts = write_texts(tmp_path / "texts.jsonl")
    methods = ["default", "fairness"]
    with in_own_process(Editor()) as server:
        swept = eh.overcorrection(
            methods=methods, texts=texts, model=speaker(server), out=tmp_path / "mine"
        )
        ran = evenhand(
            *("overcorrection", "--method", ",".join(methods), "--texts", str(texts)),
            *("--out", "theirs", "--json"),
            EVENHAND_BASE_URL=server.url,
        )
    assert swept["fairness"].report["made_worse"].value == pytest.approx(19 / 40)
    written = json.loads((tmp_path / "mine/overcorrection.json").read_bytes())
    assert written == plain(swept.to_dict())
    theirs = {arm["name"]: arm["report"]["scores"] for arm in json.loads(ran.stdout)["arms"]}
    assert theirs == {arm["name"]: arm["report"]["scores"] for arm in written["arms"]}


# -- judges and harms -----------------------------------------------------------------------------


def test_scenarios_are_written_as_the_command_writes_them(evenhand: Run, tmp_path: Path) -> None:
    model = eh.ScriptedModel(any_reply, name="writer")
    with raises_naming(eh.UserError, "--max-calls", "higher cap"):
        eh.judge_scenarios(bases=6, model=model, out=tmp_path / "mine", max_calls=2)
    made = eh.judge_scenarios(bases=6, model=model, out=tmp_path / "mine")
    assert (len(made.scenarios), made.asked) == (6, 6)
    found = printed(
        evenhand, "dev", "judge-scenarios", "--bases", "6", "--replay", "mine", "--out", "theirs"
    )
    assert (found["scenarios"], found["same_words"]) == (6, made.same_words)
    written = [(tmp_path / run / "scenarios.jsonl").read_bytes() for run in ("mine", "theirs")]
    assert written == [made.to_bytes()] * 2


def test_a_harm_is_audited_and_listed_as_by_the_commands(
    evenhand: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evenhand.toml").write_text(CONFIG)
    (tmp_path / "policy.md").write_text(VAGUE)
    (tmp_path / "examples.jsonl").write_text(lines_of_examples())
    monkeypatch.chdir(tmp_path)
    (before,) = eh.harms()
    assert (before.harm, before.harmful, before.benign, before.passes) == ("tenants", 24, 24, False)
    with in_own_process(Keen()) as server:
        monkeypatch.setenv("EVENHAND_BASE_URL", server.url)
        audited = eh.audit_harm("tenants", out="runs/mine")
    assert audited.state == "fail"
    checks = {check.name: check.state for check in audited.checks}
    assert (checks["sensitivity"], checks["false_alarms"]) == ("pass", "fail")
    (row,) = printed(evenhand, "dev", "harms")
    (line,) = eh.harms(tmp_path / "evenhand.toml")
    assert row == {
        "harm": "tenants", "judge": "default", "harmful": 24, "benign": 24,
        "certificate": line.certificate,
    }  # fmt: skip
    assert line.certificate != before.certificate


# -- counterfactuals ------------------------------------------------------------------------------


def hiring(request: ModelRequest) -> str:
    """Hires by a whole name alone: an effect of whoever is named, and none of a group."""
    words = " ".join(message.content for message in request.messages)
    return "yes" if sum(words.encode()) % 2 else "no"


def test_a_counterfactual_test_finds_what_the_command_finds(evenhand: Run, tmp_path: Path) -> None:
    rows = [{"id": f"p{n}", "prompt": f"Case {n}: hire {{name}}?"} for n in range(8)]
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    report = eh.counterfactual(
        prompts,
        attributes=["gender"],
        decision="^(yes|no)$",
        favorable_outcome="yes",
        model=eh.ScriptedModel(hiring, name="app"),
        out=tmp_path / "mine",
    )
    assert report.coverage.n == 40
    asked = ("counterfactual", str(prompts), "--attributes", "gender", "--decision", "^(yes|no)$")
    found = printed(
        evenhand, *asked, "--favorable-outcome", "yes", "--replay", "mine", "--out", "theirs"
    )
    assert found["scores"] == plain(report.to_dict())["scores"]
    made = eh.counterfactual_versions(prompts, tmp_path / "mine.jsonl", attributes=["gender"])
    assert made.versions == 40
    ran = evenhand(*asked[:4], "--versions-out", "theirs.jsonl")
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "theirs.jsonl").read_bytes() == made.file.read_bytes()


def test_a_counterfactual_test_is_prepared_as_by_the_command(evenhand: Run, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("She asks for a raise.\nHe is late again.\n")
    marked = eh.counterfactual_find(prompts, tmp_path / "mine.jsonl", attributes=["gender"])
    assert (marked.spans, marked.prompts) == (2, 2)
    with raises_naming(eh.UserError, "mine.jsonl"):
        eh.counterfactual_find(prompts, marked.file)
    command = ("counterfactual", str(prompts), "--attributes", "gender")
    assert evenhand(*command, "--find", "theirs.jsonl").returncode == 0
    assert (tmp_path / "theirs.jsonl").read_bytes() == marked.file.read_bytes()
    needed = eh.counterfactual_plan(0.05, attributes=["gender"])
    assert needed.prompts > eh.counterfactual_plan(0.2, attributes=["gender"]).prompts
    assert_names(evenhand(*command, "--plan", "0.05").stdout, f"{needed.prompts:,}", 0.05)
