"""`train.json`: what was trained, from what, with what, and how it went."""

import hashlib
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evenhand.errors import UserError
from evenhand.training.data import sha256_of_rows
from evenhand.training.folders import RECORD, write
from evenhand.training.recipes import Recipe

_LIBRARIES = ("torch", "trl", "transformers", "accelerate", "peft", "datasets")
# What must be the same for a resumed training to be the same training.
_SAME = ("stage", "recipe", "base", "pairs", "world_size", "reward_model")


def begun(
    stage: str,
    recipe: Recipe,
    model: Path,
    pairs: Path,
    *,
    config: str,
    world_size: int,
    reward: Path | None = None,
) -> dict[str, Any]:
    return {
        "format": 1,
        "stage": stage,
        "state": "running",
        "evenhand": version("evenhand"),
        "versions": {name: version(name) for name in _LIBRARIES},
        "python": platform.python_version(),
        "machine": platform.machine(),
        "recipe": recipe.describe(),
        "seed": recipe.seed,
        "base": {"folder": str(model), "sha256": sha256_of_weights(model)},
        "pairs": {
            "folder": str(pairs),
            "config": config,
            "sha256": sha256_of_rows(pairs, config, all_low=getattr(recipe, "all_low", False)),
        },
        "reward_model": None
        if reward is None
        else {"folder": str(reward), "sha256": sha256_of_weights(reward)},
        "world_size": world_size,
        "resumed_from": [],
        "metrics": {},
    }


def load(out: Path) -> dict[str, Any] | None:
    try:
        content = dict(json.loads((out / RECORD).read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        raise UserError(f"{out / RECORD} cannot be read; name another --out") from None
    return content


def save(out: Path, record: dict[str, Any]) -> None:
    write(out / RECORD, json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def require_same(out: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    changed = [name for name in _SAME if _identity(before.get(name)) != _identity(now[name])]
    if changed:
        raise UserError(
            f"{out} holds a training with another {', '.join(changed)}; give the same to go on "
            "with it, or another --out to start anew"
        )


def _identity(value: Any) -> Any:
    """Folders may move; their bytes may not change."""
    if isinstance(value, dict) and "sha256" in value:
        return {name: part for name, part in value.items() if name != "folder"}
    return value


def sha256_of_weights(folder: Path) -> str:
    files = sorted(path for path in folder.glob("*.safetensors") if path.is_file())
    if not files:
        raise UserError(
            f"{folder} holds no .safetensors; .bin files are pickles, which can run code when they "
            "are opened, and are refused"
        )
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()
