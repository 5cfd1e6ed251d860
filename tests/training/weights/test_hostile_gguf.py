"""GGUF files that are damaged or made to harm: refused in words, with nothing written."""

import struct
from pathlib import Path

import pytest
import yaml

from evenhand.core.errors import UserError
from tests.errors import raises_naming
from tests.training.weights.test_gguf import _skeleton

pytest.importorskip("gguf", reason="GGUF files need: pip install 'evenhand[train]'")

_START = b"GGUF" + struct.pack("<I", 3)


def _text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def _entry(name: bytes, kind: int, value: bytes) -> bytes:
    return _text(name) + struct.pack("<I", kind) + value


_LLAMA = _entry(b"general.architecture", 8, _text(b"llama"))
_HUGE = struct.pack("<Q", 2**60)
_TENSOR = _text(b"token_embd.weight") + struct.pack("<I", 2)

HOSTILE = {
    "empty": b"",
    "of-another-kind": b"\x80\x04\x95 a pickle, say" * 10,
    "cut-short": _START + b"\x01",
    "no-architecture": _START + struct.pack("<QQ", 0, 0),
    "architecture-unknown": _START
    + struct.pack("<QQ", 0, 1)
    + _entry(b"general.architecture", 8, _text(b"evil")),
    "architecture-no-text": _START
    + struct.pack("<QQ", 0, 1)
    + _entry(b"general.architecture", 4, struct.pack("<I", 7)),
    "more-entries-than-bytes": _START + struct.pack("<Q", 0) + _HUGE + _LLAMA,
    "text-longer-than-the-file": _START + struct.pack("<QQ", 0, 1) + _HUGE + b"x" * 40,
    "array-longer-than-the-file": _START
    + struct.pack("<QQ", 0, 1)
    + _entry(b"x", 9, struct.pack("<I", 8) + _HUGE),
    "entry-of-no-type": _START + struct.pack("<QQ", 0, 1) + _entry(b"x", 99, b"\0" * 40),
    "tensor-larger-than-the-file": _START
    + struct.pack("<QQ", 1, 1)
    + _LLAMA
    + _TENSOR
    + struct.pack("<QQIQ", 2**31, 2**31, 0, 0)
    + b"\0" * 200,
    "tensor-of-no-type": _START
    + struct.pack("<QQ", 1, 1)
    + _LLAMA
    + _TENSOR
    + struct.pack("<QQIQ", 4, 4, 999, 0)
    + b"\0" * 200,
    "name-no-text": _START + struct.pack("<QQ", 0, 1) + _entry(b"\xff\xfe", 8, _text(b"\xff")),
    "no-tensors": _START + struct.pack("<QQ", 0, 1) + _LLAMA,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_refused_in_words_and_leaves_nothing(
    kind: str, tiny: Path, tmp_path: Path
) -> None:
    from evenhand.training.gguf_weights import from_gguf, to_gguf  # noqa: PLC0415

    file = tmp_path / "hostile.gguf"
    file.write_bytes(HOSTILE[kind])
    with raises_naming(UserError, file, "GGUF"):
        from_gguf(file, tmp_path / "out")
    with pytest.raises(UserError):
        to_gguf(tiny, file, tmp_path / "out.gguf")
    assert [path.name for path in tmp_path.iterdir()] == ["hostile.gguf"]


@pytest.mark.parametrize(
    "licence", ["mit\nlicense: other", "mit\n---\n# Read this", "[a, b", "yes", "'", '"\\', "\x00é"]
)
def test_a_licence_cannot_leave_its_place_in_the_card(tmp_path: Path, licence: str) -> None:
    from evenhand.training.cards import front_matter  # noqa: PLC0415
    from evenhand.training.gguf_weights import _say_origin  # noqa: PLC0415

    _say_origin(tmp_path, Path("m.gguf"), licence)
    said = (tmp_path / "README.md").read_text()
    assert front_matter(tmp_path / "README.md") == {
        "license": licence,
        "library_name": "transformers",
    }
    assert said.count("\n---\n") == 1
    assert len(list(yaml.safe_load_all(said.partition("\n---\n")[0]))) == 1


def test_the_licence_of_a_file_reaches_its_card(tiny: Path, tmp_path: Path) -> None:
    from evenhand.training.gguf_weights import _license  # noqa: PLC0415

    assert _license(_skeleton(tmp_path / "skeleton.gguf", tiny)) == "mit"
