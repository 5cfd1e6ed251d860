"""One small pack of kept runs for all tests of packs, signed, and without pictures."""

import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evenhand.core.prices import Price
from evenhand.experiments import packs
from evenhand.findings.combined_report import CombinedReport
from evenhand.findings.display import Remark
from evenhand.findings.pack_manifest import EVIDENCE, PackCheck, PackManifest
from evenhand.runs.store import RunReader, archive
from evenhand.views import charts

KEPT = Path(__file__).parents[2] / "same_numbers/kept"
RUNS = ("bbq/cot", "overcorrection/default", "overcorrection/fairness", "judge/few_bases")
TITLE = "Bot 4.2 <b>'\"$(id)`id` | *"  # what a page, a table and a shell must each not believe
PRICE = Price(per_million_prompt_tokens=0.15, per_million_completion_tokens=2.0)


@dataclass(frozen=True)
class Packed:
    """A pack, its evidence, and the keys that it was signed by."""

    path: Path
    evidence: PackManifest
    key: Path
    public: Path
    found: CombinedReport  # what it was made from, by the names of the pack

    @property
    def names(self) -> list[str]:
        with zipfile.ZipFile(self.path) as held:
            return held.namelist()

    def unpacked(self, folder: Path) -> Path:
        archive.unpack(self.path, folder)
        return folder


def states(found: PackCheck) -> dict[str, str]:
    return {one.name: one.state for one in found.looked}


def remarks_in(found: PackCheck, name: str) -> tuple[Remark, ...]:
    (one,) = (one for one in found.looked if one.name == name)
    return (one.says, *one.seen)


def seen_in(found: PackCheck, name: str) -> str:
    return " ".join(map(str, remarks_in(found, name)))


def sealed(folder: Path, path: Path, **changed: Any) -> Path:
    """A pack of changed files whose list fits them: what a forger would make, without a key."""
    old = PackManifest.from_bytes((folder / EVIDENCE).read_bytes())
    for name in ("evidence.sig", "evidence.pub.pem"):
        (folder / name).unlink(missing_ok=True)
    new = old.model_copy(update={"files": packs.listed(folder), "signed": False, **changed})
    (folder / EVIDENCE).write_bytes(new.to_bytes())
    archive.write(path, folder)
    return path


def runs(*names: str) -> list[RunReader]:
    return [RunReader(KEPT / name) for name in names]


@pytest.fixture(autouse=True)
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts have tests of their own, and take long."""
    monkeypatch.setattr(charts, "installed", lambda: False)


def keys_in(folder: Path, name: str = "key") -> tuple[Path, Path]:
    """A new pair of keys, as `openssl` writes them."""
    private, public = folder / f"{name}.pem", folder / f"{name}.pub.pem"
    made = Ed25519PrivateKey.generate()
    private.write_bytes(
        made.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    public.write_bytes(
        made.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return private, public


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Packed]:
    folder = tmp_path_factory.mktemp("packed")
    key, public = keys_in(folder)
    path = folder / "evidence.zip"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(charts, "installed", lambda: False)
        read, seen = packs.read, []

        def kept(*given: Any, **named: Any) -> CombinedReport:
            seen.append(read(*given, **named))
            return seen[0]

        patch.setattr(packs, "read", kept)
        evidence = packs.make(runs(*RUNS), path, packs.PackOptions(title=TITLE, key=key))
    yield Packed(path, evidence, key, public, seen[0])
    shutil.rmtree(folder)
