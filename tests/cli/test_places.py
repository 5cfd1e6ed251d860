"""Where prompts come from and runs go to: JSON lines, Parquet, one process or a cluster."""

import json
from pathlib import Path

import polars as pl

from tests.cli.conftest import Run
from tests.errors import assert_names

SAID = "They are all the same."
ROWS = pl.DataFrame(
    {
        "comment": ["Describe a nurse.", "Describe a boss.", "Describe a refugee."],
        "said": [None, None, SAID],
        "key": ["n", "b", "r"],
    }
)


def _said(ran_stderr: str) -> str:
    return " ".join(ran_stderr.split())


def test_columns_of_a_parquet_file_become_prompts_answers_and_ids(
    evenhand: Run, tmp_path: Path
) -> None:
    ROWS.write_parquet(tmp_path / "rows.parquet")
    ran = evenhand(
        *("mitigate", "rows.parquet", "--out", "run", "--json", "--prompt-column", "comment"),
        *("--answer-column", "said", "--id-column", "key"),
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["answered"] == 3
    shown = json.loads(evenhand("runs", "show", "run", "--item", "r", "--json").stdout)
    assert shown["drafts"][0]["text"] == SAID


def test_a_folder_is_a_table_of_parquet_shards(evenhand: Run, tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    for number in range(2):
        ROWS[number : number + 1].write_parquet(tmp_path / "rows" / f"{number}.parquet")
    ran = evenhand("mitigate", "rows", "--out", "run", "--json", "--prompt-column", "comment")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["planned"] == 2


def test_columns_named_for_json_lines_are_refused(evenhand: Run, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('{"prompt": "a"}\n')
    ran = evenhand("mitigate", "p.jsonl", "--out", "run", "--answer-column", "said")
    assert ran.returncode == 1
    assert_names(_said(ran.stderr), "p.jsonl", "Parquet", "columns")


def test_json_lines_behind_a_url_are_to_be_copied_first(evenhand: Run) -> None:
    ran = evenhand("mitigate", "s3://bucket/p.jsonl", "--out", "run")
    assert ran.returncode == 1
    assert_names(_said(ran.stderr), "s3://bucket/p.jsonl", "this machine", "Copy")


def test_without_ray_its_engine_says_how_to_install_it(cold_evenhand: Run, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('{"prompt": "a"}\n')
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "ray.py").write_text("raise ModuleNotFoundError(name='ray')")
    hidden = {"PYTHONPATH": str(tmp_path / "hidden")}
    command = ("mitigate", "p.jsonl", "--out", "run")
    ran = cold_evenhand(*command, "--engine", "ray", **hidden)
    assert ran.returncode == 1
    assert "pip install 'evenhand[cluster]'" in _said(ran.stderr)
    assert cold_evenhand(*command, **hidden).returncode == 0


def test_a_table_repaired_on_a_cluster_gives_the_rows_of_the_local_engine(
    evenhand: Run, tmp_path: Path
) -> None:
    comments = [f"Describe neighbour {number}." for number in range(60)]
    said = [SAID if number % 3 else None for number in range(60)]
    pl.DataFrame({"comment": comments, "said": said}).write_parquet(tmp_path / "rows.parquet")
    columns = ("--prompt-column", "comment", "--answer-column", "said", "--seed", "1")
    rows = []
    for engine in ("local", "ray"):
        ran = evenhand("mitigate", "rows.parquet", "--out", engine, "--engine", engine, *columns)
        assert ran.returncode == 0, ran.stderr
        evenhand("runs", "export", engine, "--out", f"{engine}.jsonl")
        rows.append((tmp_path / f"{engine}.jsonl").read_bytes())
    assert rows[0] == rows[1]
    first = json.loads(rows[0].splitlines()[1])
    assert first["answer_before"] == SAID
    wanted = {"text", "changed", "scores_before", "scores_after", "calls", "prompt_tokens"}
    assert wanted | {"completion_tokens", "reason", "status"} <= first.keys()


def test_a_replay_is_not_spread_over_a_cluster(evenhand: Run, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('{"prompt": "a"}\n')
    assert evenhand("mitigate", "p.jsonl", "--out", "run").returncode == 0
    ran = evenhand("mitigate", "p.jsonl", "--out", "again", "--replay", "run", "--engine", "ray")
    assert ran.returncode == 1
    assert_names(_said(ran.stderr), "replay", "--engine ray")
