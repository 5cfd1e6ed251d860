"""Write the JSON Schema of each file that evenhand seals: docs/schemas/NAME-FORMAT.json.

    python scripts/json_schemas.py            # writes the schemas
    python scripts/json_schemas.py --check    # ends with 1 if one of them is out of date

The number is that of the format. A change of a released format is a new number and a new file; the
schemas of older formats stay.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from evenhand.findings.certificate import Certificate
from evenhand.findings.pack_manifest import PackManifest
from evenhand.findings.screen_file import ScreenFile

FOLDER = Path(__file__).parents[1] / "docs" / "schemas"
MODELS: dict[str, type[BaseModel]] = {
    "certificate": Certificate,  # audit judge, slant, harm, reward
    "evidence": PackManifest,  # evidence.json of a bundle, and `runs pack --json`
    "screen": ScreenFile,  # `scorers screen calibrate`, and its --json
}


def schemas() -> dict[str, str]:
    """Give the text of each schema by the name of its file."""
    return {f"{_name(name, model)}.json": _text(name, model) for name, model in MODELS.items()}


def _name(name: str, model: type[BaseModel]) -> str:
    return f"{name}-{model.model_fields['format'].default}"


def _text(name: str, model: type[BaseModel]) -> str:
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"evenhand:{_name(name, model)}",
        **model.model_json_schema(mode="serialization"),
    }
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


def main() -> None:
    texts = schemas()
    outdated = [
        file
        for file, text in texts.items()
        if not (FOLDER / file).is_file() or (FOLDER / file).read_text("utf-8") != text
    ]
    if "--check" in sys.argv[1:]:
        sys.exit(f"out of date: {', '.join(outdated)}" if outdated else 0)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for file in outdated:
        (FOLDER / file).write_text(texts[file], "utf-8")


if __name__ == "__main__":
    main()
