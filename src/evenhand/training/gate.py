"""No reward model drives reinforcement learning before its probes pass.

`probes.json` lies in the folder of the reward model and holds the checksums of every file that
shapes a reward. So probes of other weights, or of another chat template, do not count.
"""

import hashlib
from pathlib import Path
from typing import Any

import orjson

from evenhand.errors import UserError
from evenhand.metrics.reward_probes import FEWEST_TOPICS
from evenhand.training.folders import write

FILE = "probes.json"
FORMAT = 1

# The scale in reward_scale.json moves all rewards alike, and so changes no preference.
_SHAPING = (
    "*.safetensors",
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
)


def record(reward_folder: Path, pairs: Path, results: dict[str, Any]) -> Path:
    """Write what was found beside the weights that it was found of."""
    identity = {
        "format": FORMAT,
        "model": checksums_of(reward_folder),
        "pairs_sha256": sha256_of(pairs),
    }
    file = reward_folder / FILE
    data = orjson.dumps({**results, **identity}, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
    write(file, data.decode())
    return file


def require_passed(reward_folder: Path, force: bool) -> str:
    """Raises unless the probes of this very model passed. What it returns belongs into the record
    of the training: that they passed, or what `force` went past."""
    objection = _objection(reward_folder)
    if objection is None:
        return "the reward model passed its probes"
    if force:
        return f"forced, although {objection}"
    raise UserError(
        f"{objection}. Run `evenhand audit reward --weights {reward_folder} --pairs PAIRS "
        "--out RUN`, with pairs of more topics if it is open; train the reward model on better "
        "pairs if it fails; or say --force to train against it all the same"
    )


def _objection(folder: Path) -> str | None:
    """Why this reward model may not be used; None if it may."""
    file = folder / FILE
    if not file.is_file():
        return f"{folder} has not been probed"
    try:
        results = orjson.loads(file.read_bytes())
        passed, probed, prefers = results["passed"], results["model"], results["prefers"]
        topics, open_ = results.get("topics", 0), results.get("open", [])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return f"{file} cannot be read"
    now = checksums_of(folder)
    changed = sorted(name for name in {*probed, *now} if probed.get(name) != now.get(name))
    if changed:
        return f"{file} is of another model ({', '.join(changed)} changed since)"
    if prefers or (passed is not True and not open_):
        return f"{folder} failed its probes: {' '.join(prefers)}".rstrip(".")
    if topics < FEWEST_TOPICS:
        return f"{folder} was probed on {topics} topics, and {FEWEST_TOPICS} are the least"
    if passed is not True:
        return f"{folder} is not shown to be sound: {', '.join(open_)}"
    return None


def sha256_of(folder: Path) -> str:
    """Of all tables of a pairs folder, with their names."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.parquet")):
        digest.update(f"{file.relative_to(folder).as_posix()}\0{_sha256(file)}\n".encode())
    return digest.hexdigest()


def checksums_of(folder: Path) -> dict[str, str]:
    """Of every file that shapes a reward, by its name."""
    files = {file for pattern in _SHAPING for file in folder.glob(pattern)}
    return {file.name: _sha256(file) for file in sorted(files)}


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
