"""Other tools take part through an adapter: a script that is run by the Python which has the tool,
reads the folder, and writes what the tool prints."""

import subprocess
import tempfile
from importlib import resources
from pathlib import Path

from pydantic import ValidationError

from evenhand.core.errors import UserError
from evenhand.validation.conformance.checks import ToolScores

# Name: the adapter, with what follows the folder and the file, and how the tool is installed.
TOOLS = {
    "lm-eval": (("run_lm_eval.py", "bbq"), "lm-eval"),
    "lm-eval-generate": (("run_lm_eval.py", "bbq_generate"), "lm-eval"),
    "inspect-evals": (("run_inspect_evals.py",), "inspect_evals"),
    "helm": (("run_helm.py",), "crfm-helm"),
}
_SECONDS = 3600  # our choice: the slowest of these takes minutes on a busy machine


def scores(tool: str, python: str, folder: Path) -> ToolScores:
    """Let a tool score every case of the folder. `tool` is a name of `TOOLS`, or the path of an
    adapter."""
    with tempfile.TemporaryDirectory() as workdir:
        out = Path(workdir) / "scores.json"
        command = _command(tool, python, folder, out)
        try:
            ran = subprocess.run(  # noqa: S603 - whoever runs this names the program
                command, capture_output=True, text=True, check=False, timeout=_SECONDS
            )
        except OSError as error:
            raise UserError(f"{python} cannot be run ({error.strerror}): see --python") from None
        except subprocess.TimeoutExpired:
            raise UserError(f"{tool} was not done within {_SECONDS} s") from None
        if ran.returncode != 0:
            raise UserError(f"{tool} failed: {_last_line(ran.stderr)}.{_hint(tool, python)}")
        return _read(out, tool)


def _command(tool: str, python: str, folder: Path, out: Path) -> list[str]:
    if tool in TOOLS:
        (script, *more), _ = TOOLS[tool]
        file = Path(str(resources.files(__package__).joinpath("adapters", script)))
    else:
        file, more = Path(tool), []
    if not file.is_file():
        names = ", ".join(("evenhand", *TOOLS))
        raise UserError(f"no tool {tool!r}: give one of {names}, or the path of an adapter")
    return [python, str(file), str(folder.resolve()), str(out), *more]


def _read(file: Path, tool: str) -> ToolScores:
    try:
        return ToolScores.model_validate_json(file.read_bytes())
    except OSError:
        raise UserError(
            f"{tool} wrote no file: an adapter writes into its second argument"
        ) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise UserError(
            f"what {tool} wrote is not in the form of an adapter: {where}: {first['msg']}; "
            "README.md of the suite has the form"
        ) from None


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def _hint(tool: str, python: str) -> str:
    return (
        f" Is it installed there? {python} -m pip install {TOOLS[tool][1]}" if tool in TOOLS else ""
    )
