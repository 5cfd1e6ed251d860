"""No model folder runs code of its own: not in our loaders, and not by what we hand on."""

import ast
import json
import re
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evenhand.cli.app import app
from evenhand.core.errors import UserError
from evenhand.training.export import ExportJob, Target, export, verl_config
from evenhand.training.folders import require_model
from tests.errors import raises_naming

SOURCES = Path(__file__).parents[3] / "src"
LOADERS = {"from_pretrained", "from_config", "pipeline", "load_dataset", "create_model_from_path"}
# It puts weights into a model that is in memory already, and knows no such option.
EXEMPT = {"PeftModel.from_pretrained"}
EVIL = """\
from pathlib import Path
Path({mark!r}).write_text("ran")
from transformers import LlamaConfig
class EvilConfig(LlamaConfig):
    model_type = {kind!r}
"""


def _loads(source: str) -> list[ast.Call]:
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [
        call
        for call in found
        if ast.unparse(call.func).rpartition(".")[2] in LOADERS
        and ast.unparse(call.func) not in EXEMPT
    ]


def _refuses_code(call: ast.Call) -> bool:
    return any(
        word.arg == "trust_remote_code"
        and isinstance(word.value, ast.Constant)
        and word.value.value is False
        for word in call.keywords
    )


def test_every_loading_call_of_the_package_says_that_no_code_is_run() -> None:
    calls = [
        (file.name, call)
        for file in sorted(SOURCES.rglob("*.py"))
        for call in _loads(file.read_text())
    ]
    assert len(calls) >= 10  # the search finds them at all
    assert [f"{name}:{call.lineno}" for name, call in calls if not _refuses_code(call)] == []


@pytest.mark.parametrize(
    "source",
    [
        "AutoTokenizer.from_pretrained(folder)",
        "kind.from_pretrained(folder, trust_remote_code=True)",
        "kind.from_pretrained(folder, **own)",
        "load_dataset(name, trust_remote_code=trusted)",
    ],
)
def test_a_call_that_leaves_it_open_is_found(source: str) -> None:
    (call,) = _loads(source)
    assert not _refuses_code(call)


def test_trl_and_vllm_are_told_to_run_none(tiny: Path, toy_pairs: Path, tmp_path: Path) -> None:
    """TRL loads the model again by its folder, for a reference or into vLLM."""
    from evenhand.training.recipes import SftRecipe  # noqa: PLC0415
    from evenhand.training.stage import Stage  # noqa: PLC0415

    stage = Stage({"stage": "sft"}, SftRecipe(), tiny, toy_pairs, tmp_path, lambda _: None)
    assert stage.arguments()["trust_remote_code"] is False


def test_no_script_of_ours_asks_another_program_to_run_it() -> None:
    asked = re.compile(r"trust[-_]remote[-_]code['\"]?\s*[=:]\s*[Tt]rue|[^o]-trust-remote-code")
    assert asked.search("vllm serve --trust-remote-code")
    for room in ("src", "compat", "scripts", "examples", "bench"):
        for file in (SOURCES.parent / room).rglob("*"):
            if file.suffix in (".py", ".sh", ".ipynb", ".md", ".yaml"):
                assert not asked.search(file.read_text()), file


@pytest.fixture(params=["known", "unknown"])
def evil(request: pytest.FixtureRequest, tiny: Path, tmp_path: Path) -> Path:
    """A model folder with code: of a kind that transformers knows, and of one that it does not."""
    folder = tmp_path / "evil"
    shutil.copytree(tiny, folder)
    kind = "llama" if request.param == "known" else "evil"
    config = json.loads((folder / "config.json").read_text())
    config |= {"auto_map": {"AutoConfig": "evil.EvilConfig"}, "model_type": kind}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "evil.py").write_text(EVIL.format(mark=str(tmp_path / "ran"), kind=kind))
    return folder


def test_a_model_folder_with_code_is_refused_in_words_though_somebody_answers_yes(
    evil: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    arguments = ["train", "sft", "--model", str(evil), "--pairs", str(toy_pairs)]
    arguments += ["--out", str(tmp_path / "out")]
    with raises_naming(UserError, evil / "config.json", "(auto_map)"):
        CliRunner().invoke(app, arguments, input="y\n" * 50, catch_exceptions=False)
    assert not (tmp_path / "ran").exists()


def test_the_loaders_alone_do_not_run_it_either(
    evil: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenhand.training import weights  # noqa: PLC0415
    from evenhand.training.recipes import SftRecipe  # noqa: PLC0415

    monkeypatch.setattr("builtins.input", lambda *_: "y")  # what transformers would ask
    with suppress(ValueError):  # a kind that is not known
        weights.longest(evil, SftRecipe())
    with suppress(ValueError):
        weights.load_policy(evil, weights.load_tokenizer(evil), SftRecipe())
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("target", ["openrlhf", "verl"])
def test_no_folder_with_code_is_handed_to_a_project_that_would_run_it(
    evil: Path, tiny: Path, toy_pairs: Path, tmp_path: Path, target: Target
) -> None:
    for job in (
        ExportJob(pairs=toy_pairs, model=evil, reward=tiny),
        ExportJob(pairs=toy_pairs, model=tiny, reward=evil),
    ):
        with raises_naming(UserError, evil / "config.json", "(auto_map)"):
            export(target, job, tmp_path / "job")
    assert not (tmp_path / "job").exists()


def test_verl_is_told_to_run_none(tiny: Path, toy_pairs: Path) -> None:
    config = verl_config(ExportJob(pairs=toy_pairs, model=tiny, reward=tiny))
    for part in (config["data"], config["actor_rollout_ref"]["model"], config["critic"]["model"]):
        assert part["trust_remote_code"] is False


def test_code_of_a_tokenizer_is_found_too_and_in_any_spelling(tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny, folder)
    require_model(folder)
    (folder / "tokenizer_config.json").write_text('{"x": [{"auto\\u005fmap": {}}]}')
    with raises_naming(UserError, "tokenizer_config.json", "(auto_map)"):
        require_model(folder)
    (folder / "tokenizer_config.json").write_text("{")
    with raises_naming(UserError, "tokenizer_config.json", "JSON"):
        require_model(folder)
