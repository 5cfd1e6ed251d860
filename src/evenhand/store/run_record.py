"""`run.json`: what a run is. Written before the first call and never edited."""

import platform
import time
from importlib import metadata
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from evenhand.errors import CorruptRun, UnknownFormat
from evenhand.store.differences import refuse

_COMPARED = ("method", "prompts", "cast", "source", "limits", "seed")
FORMAT = 2  # 2: results with answer_before, scores_before and scores_after


class RunRecord(BaseModel):
    """The plan of a run and the versions it was made with."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: int = FORMAT
    # What the run is: a resumed run must agree with all of it.
    method: dict[str, Any]
    prompts: dict[str, str]  # "stardtox/judge@1" -> sha256 of the file
    cast: dict[str, Any]
    source: dict[str, Any]
    limits: dict[str, Any]
    seed: int | None
    # When and with what: for the reader, not compared.
    created: str
    versions: dict[str, str]

    def differences(self, other: "RunRecord") -> list[str]:
        return [name for name in _COMPARED if getattr(self, name) != getattr(other, name)]

    def to_bytes(self) -> bytes:
        return orjson.dumps(self.model_dump(), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> "RunRecord":
        try:
            raw = orjson.loads(data)
            version = raw["format"]
            if not isinstance(version, int):
                raise TypeError
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise CorruptRun(f"{where}/run.json is not a run record") from None
        if version != FORMAT:
            raise UnknownFormat(
                f"{where} has format {version}, this evenhand reads format {FORMAT}; "
                "use the evenhand version that run.json names"
            )
        try:
            return cls.model_validate(raw)
        except ValidationError as error:
            raise CorruptRun(f"{where}/run.json: {error.errors()[0]['msg']}") from None


def versions() -> dict[str, str]:
    packages = ("evenhand", "aiohttp", "orjson", "polars", "pyarrow", "pydantic")
    found = {package: metadata.version(package) for package in packages}
    return {"python": platform.python_version(), "platform": platform.platform(), **found}


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def refuse_other_run(planned: RunRecord, found: RunRecord, where: str) -> None:
    """A folder is resumed only by the plan that made it."""
    refuse(
        found.model_dump(include=set(_COMPARED)), planned.model_dump(include=set(_COMPARED)), where
    )
