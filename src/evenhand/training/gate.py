"""No reward model drives reinforcement learning before the audit of its own weights passed.

Its certificate lies in the folder of the reward model and holds the checksums of every file that
shapes a reward. So an audit of other weights, or of another chat template, does not count.
"""

import hashlib
from pathlib import Path
from typing import Any

from evenhand.core.errors import UserError
from evenhand.findings.certificate import Certificate, CertificateRequirements, why_not
from evenhand.statistics.metrics.reward_probes import FEWEST_TOPICS
from evenhand.training.probes import ProbeTexts

FILE = "reward-certificate.json"
KIND = "reward"
CHECKS = frozenset((
    "accuracy", "gap", "longer_wins", "shorter_wins", "length", "repetition", "padding",
    "role_opener_chosen", "role_opener_rejected",
    *(f"key:{kind}" for kind in ProbeTexts.shipped().said()),
))  # fmt: skip

# The scale in reward_scale.json moves all rewards alike, and so changes no preference.
_SHAPING = (
    "*.safetensors",
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
)


def require_passed(reward_folder: Path, force: bool) -> str:
    """Refuse a reward model whose own audit did not pass.

    Args:
        reward_folder: The folder of the model.
        force: Whether to train against it all the same.

    Returns:
        What belongs into the record of the training: that it passed, or what `force` went past.

    Raises:
        UserError: Without a certificate that passes, unless forced.
    """
    objection = _objection(reward_folder)
    if objection is None:
        return "the reward model passed its audit"
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
        return f"{folder} has no certificate of an audit"
    try:
        certificate = Certificate.from_bytes(file.read_bytes(), str(file))
    except UserError as problem:
        return str(problem)
    expected = CertificateRequirements(
        kind=KIND, model=identity_of(folder), method=method(), prompts={}, checks=CHECKS
    )
    reason = why_not(certificate, expected)
    if reason is not None:
        return f"{file} {reason}{_changed(folder, certificate.judge.described)}"
    topics = certificate.benchmark.get("topics", 0)
    if certificate.state != "pass":
        return f"the certificate of {folder} says {certificate.state}{certificate.decided_by}"
    if topics < FEWEST_TOPICS:
        return f"{folder} was audited on {topics} topics, and {FEWEST_TOPICS} are the least"
    return None


def _changed(folder: Path, then: dict[str, Any]) -> str:
    now = checksums_of(folder)
    changed = sorted(name for name in {*then, *now} if then.get(name) != now.get(name))
    return f" ({', '.join(changed)} changed since)" if changed else ""


def method() -> dict[str, Any]:
    """How a reward model is audited, as its certificate names it."""
    return {"name": KIND, "settings": {"texts": ProbeTexts.shipped().version}}


def identity_of(folder: Path) -> str:
    """One checksum of every file that shapes a reward."""
    lines = (f"{name}\0{sha256}\n" for name, sha256 in checksums_of(folder).items())
    return hashlib.sha256("".join(lines).encode()).hexdigest()


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
