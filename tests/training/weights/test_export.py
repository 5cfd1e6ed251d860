"""Jobs for OpenRLHF and verl: the rows they read, our numbers under their names, and their own
parsers over both, where they are installed."""

import argparse
import ast
import importlib.util
import json
import os
import shlex
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from evenhand.core.errors import UserError
from evenhand.training.export import VERL_CONFIG, ExportJob, export
from evenhand.training.recipes import PpoRecipe
from tests.errors import raises_naming


@pytest.fixture
def reward(tiny: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "reward" / "model"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text((tiny / "config.json").read_text())
    (folder / "reward_scale.json").write_text('{"shift": 3.0, "scale": 7.0}')
    return folder


def _arguments(script: Path) -> list[str]:
    """As a shell would split them, without the launcher and "$@"."""
    text = script.read_text().replace("\\\n", " ")
    words = shlex.split(text[text.index("exec ") :])
    return words[words.index(next(word for word in words if "." in word)) + 1 : -1]


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_openrlhf_gets_pairs_with_margins_and_each_prompt_once(
    tiny: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    files = export(
        "openrlhf", ExportJob(pairs=toy_pairs, model=tiny, reward=None), tmp_path / "job"
    )
    assert all(file.is_file() for file in files)
    rows = _lines(tmp_path / "job" / "pairs-train.jsonl")
    assert len(rows) == 24
    assert set(rows[0]) == {"prompt", "chosen", "rejected", "margin"}
    assert {row["margin"] for row in rows} == {0.5, 0.6}
    assert rows[0]["chosen"][0]["role"] == "assistant"
    prompts = [row["input"][0]["content"] for row in _lines(tmp_path / "job" / "prompts.jsonl")]
    assert len(prompts) == len(set(prompts)) == 12, "two pairs a topic have one prompt"
    held_out = {row["prompt"][0]["content"] for row in _lines(tmp_path / "job/pairs-test.jsonl")}
    assert not held_out & set(prompts)


def test_verl_gets_its_columns_and_never_a_held_out_prompt_to_train_on(
    tiny: Path, toy_pairs: Path, reward: Path, tmp_path: Path
) -> None:
    export("verl", ExportJob(pairs=toy_pairs, model=tiny, reward=reward), tmp_path / "job")
    tables = {
        split: pq.read_table(tmp_path / "job" / f"{split}.parquet").to_pylist()
        for split in ("train", "test")
    }
    assert [len(rows) for rows in tables.values()] == [12, 4]
    columns = {"data_source", "prompt", "ability", "reward_model", "extra_info"}
    assert set(tables["train"][0]) == columns
    asked = [{row["prompt"][0]["content"] for row in rows} for rows in tables.values()]
    assert not asked[0] & asked[1]


def test_the_weight_of_kl_grows_with_the_scale_of_rewards_that_is_not_read_there(
    tiny: Path, toy_pairs: Path, reward: Path, tmp_path: Path
) -> None:
    job = ExportJob(pairs=toy_pairs, model=tiny, reward=reward)
    assert job.kl_weight == pytest.approx(7.0 * PpoRecipe().beta)
    export("verl", job, tmp_path / "verl")
    config = yaml.safe_load((tmp_path / "verl" / f"{VERL_CONFIG}.yaml").read_text())
    assert config["algorithm"]["kl_ctrl"]["kl_coef"] == pytest.approx(0.35)
    assert config["algorithm"]["use_kl_in_reward"] is True, "off by default there"
    export("openrlhf", job, tmp_path / "openrlhf")
    words = _arguments(tmp_path / "openrlhf" / "ppo.sh")
    assert words[words.index("--algo.kl.init_coef") + 1] == "0.35"


@pytest.mark.parametrize(
    ("nodes", "gpus", "batch"), [(1, 1, 4), (1, 4, 4), (1, 8, 8), (2, 8, 16), (1, 3, 6)]
)
def test_a_batch_is_one_that_all_gpus_share_evenly(
    tiny: Path, toy_pairs: Path, nodes: int, gpus: int, batch: int
) -> None:
    assert PpoRecipe().batch == 4, "the paper's"
    job = ExportJob(pairs=toy_pairs, model=tiny, reward=None, nodes=nodes, gpus=gpus)
    assert job.batch == batch


def test_paths_with_blanks_and_quotes_reach_the_program_whole(
    tiny: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    odd = tmp_path / "it's a model; $HOME"
    odd.symlink_to(tiny)
    export("openrlhf", ExportJob(pairs=toy_pairs, model=odd, reward=odd), tmp_path / "job")
    # The shell itself splits it: a python that prints what it was given.
    script = (tmp_path / "job" / "ppo.sh").read_text()
    spoken = script.replace(
        "python3 -m openrlhf.cli.train_ppo_ray",
        f"{sys.executable} -c 'import sys; print(chr(10).join(sys.argv[1:]))'",
    )
    assert spoken != script
    (tmp_path / "job" / "said.sh").write_text(spoken)
    said = subprocess.run(
        ["sh", str(tmp_path / "job" / "said.sh"), "--train.seed", "7"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert said[said.index("--actor.model_name_or_path") + 1] == str(odd.resolve())
    assert said[-2:] == ["--train.seed", "7"]


def test_what_cannot_be_trained_there_is_refused(
    tiny: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    with raises_naming(UserError, "verl", "--reward"):
        export("verl", ExportJob(pairs=toy_pairs, model=tiny, reward=None), tmp_path / "a")
    with raises_naming(UserError, tmp_path, "from-gguf"):
        export("openrlhf", ExportJob(pairs=toy_pairs, model=tmp_path, reward=None), tmp_path / "a")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note").write_text("mine")
    with raises_naming(UserError, tmp_path / "full", "--out"):
        export("openrlhf", ExportJob(pairs=toy_pairs, model=tiny, reward=None), tmp_path / "full")


def _openrlhf(name: str) -> Path:
    found = importlib.util.find_spec("openrlhf")
    if found is None or not found.submodule_search_locations:
        pytest.skip("openrlhf is not installed: pip install --no-deps openrlhf==0.11.2")
    return Path(found.submodule_search_locations[0]) / name


def _parsed_by_openrlhf(program: Path, words: list[str]) -> Any:
    """What the program would train with. Its parser stands in its main block, so that is run with
    a `train` that keeps what it is given; the imports above it want GPUs."""
    bare = {name: ModuleType(name) for name in ("openrlhf", "openrlhf.utils")}
    for name, module in bare.items():
        module.__path__ = [str(program.parents[1].joinpath(*name.split(".")[1:]))]
    main = next(node for node in ast.parse(program.read_text()).body if isinstance(node, ast.If))
    given: list[Any] = []
    names = {"argparse": argparse, "datetime": datetime, "train": given.append}
    with pytest.MonkeyPatch.context() as patch:
        for name, module in bare.items():
            patch.setitem(sys.modules, name, module)
        patch.setattr(sys, "argv", [program.name, *words])
        exec(compile(ast.Module(main.body, []), str(program), "exec"), names)
    return given[0]


def test_openrlhf_s_own_parsers_take_the_scripts(
    tiny: Path, toy_pairs: Path, reward: Path, tmp_path: Path
) -> None:
    ppo, rewarding = _openrlhf("cli/train_ppo_ray.py"), _openrlhf("cli/train_rm.py")
    export("openrlhf", ExportJob(pairs=toy_pairs, model=tiny, reward=reward), tmp_path / "job")
    got = _parsed_by_openrlhf(ppo, _arguments(tmp_path / "job" / "ppo.sh"))
    assert (got.actor.adam.lr, got.train.batch_size, got.data.max_len) == (5e-6, 4, 2048)
    assert got.reward.model_name_or_path == str(reward)
    assert got.critic.model_name_or_path == str(reward), "its critic starts from the reward model"
    assert got.algo.kl.init_coef == pytest.approx(0.35)
    got = _parsed_by_openrlhf(rewarding, _arguments(tmp_path / "job" / "reward.sh"))
    assert (got.adam.lr, got.train.batch_size, got.model.margin_loss_enable) == (3e-5, 32, True)
    assert got.eval.dataset == "pairs-test.jsonl"


_VERL = """
import sys, hydra
def started(config): raise SystemExit("it should only be shown")
hydra.main(config_path=sys.argv.pop(1), config_name="ppo_trainer", version_base=None)(started)()
"""


def test_verl_s_own_configuration_takes_the_script(
    tiny: Path, toy_pairs: Path, reward: Path, tmp_path: Path
) -> None:
    pytest.importorskip("hydra", reason="verl is started by hydra-core")
    found = importlib.util.find_spec("verl")
    if found is None or not found.submodule_search_locations:
        pytest.skip("verl is not installed: pip install --no-deps verl==0.9.1")
    theirs = Path(found.submodule_search_locations[0]) / "trainer" / "config"
    export("verl", ExportJob(pairs=toy_pairs, model=tiny, reward=reward), tmp_path / "job")
    (tmp_path / "main.py").write_text(_VERL)
    words = _arguments(tmp_path / "job" / "ppo.sh")
    shown = subprocess.run(
        [sys.executable, str(tmp_path / "main.py"), str(theirs), *words, "--cfg", "job"],
        cwd=tmp_path / "job", capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    config = yaml.safe_load(shown.stdout)
    actor = config["actor_rollout_ref"]["actor"]
    assert (float(actor["optim"]["lr"]), actor["strategy"]) == (5e-6, "fsdp2")
    assert config["reward"]["reward_model"]["model_path"] == str(reward)
    assert config["reward"]["num_workers"] == 8, "what we do not set is as verl has it"
    assert config["data"]["train_batch_size"] == 4
    assert config["algorithm"]["kl_ctrl"]["kl_coef"] == pytest.approx(0.35)
