"""A finding that is kept as a file of its own is sealed by a checksum.

The checksum shows that a value was changed; it is not a signature, and does not show who made the
finding.
"""

import hashlib
from typing import Any, Self

import orjson
from pydantic import BaseModel, ConfigDict


class ChecksummedPart(BaseModel):
    """A part of a sealed file is read strictly: no coercion, no extra field, no NaN."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Checksummed(ChecksummedPart):
    """A sealed file holds the checksum of everything else in it."""

    sha256: str = ""

    def sealed(self) -> Self:
        """Give the same file with its checksum."""
        return self.model_copy(update={"sha256": self._digest()})

    def to_bytes(self) -> bytes:
        """Give the bytes of the file, the same for the same content."""
        return _json(self.model_dump()) + b"\n"

    @property
    def is_intact(self) -> bool:
        """Whether its values are those that it was sealed with."""
        return self.sha256 == self._digest()

    def _unsealed(self) -> set[str]:
        """Name the fields that the checksum leaves out."""
        return {"sha256"}

    def _digest(self) -> str:
        return hashlib.sha256(_json(self.model_dump(exclude=self._unsealed()))).hexdigest()


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
