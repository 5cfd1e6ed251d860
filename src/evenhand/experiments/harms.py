"""Custom harm policies from the config: the list, and the texts of an audit."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.experiments.config import Config
from evenhand.instruments import DataFolder
from evenhand.instruments.harm.certificate import holding
from evenhand.instruments.harm.policy import benign
from evenhand.instruments.scorer.sets import ToxicitySets, gathered


@dataclass(frozen=True, slots=True, kw_only=True)
class HarmLine:
    """A harm in the list: its judge, its examples, and whether it may be used."""

    harm: str
    judge: str
    harmful: int | None  # None: the policy or its examples cannot be read
    benign: int | None
    certificate: str  # "pass", or why it may not be used

    @property
    def passes(self) -> bool:
        """Whether it may be used."""
        return self.certificate == "pass"


def list_harms(config: Config) -> list[HarmLine]:
    """List the harms of a config."""
    return [_line(config, name) for name in config.harms]


def _line(config: Config, name: str) -> HarmLine:
    judge = config.harms[name].judge
    try:
        harm = configuration.harm_by_name(config, name)
        certificate = holding(harm, config.certificates)
        harmful, benign = (harm.examples.count(harm=kind) for kind in (True, False))
    except UserError as problem:
        return HarmLine(harm=name, judge=judge, harmful=None, benign=None, certificate=str(problem))
    return HarmLine(
        harm=name,
        judge=judge,
        harmful=harmful,
        benign=benign,
        certificate=certificate if isinstance(certificate, str) else "pass",
    )


def benign_texts(data: DataFolder, sets: Sequence[str], sample: int) -> dict[str, pl.DataFrame]:
    """Draw benign texts of public sets.

    Args:
        data: The folder of data sets.
        sets: The names of the sets.
        sample: Texts of each set.

    Returns:
        The texts of each set.

    Raises:
        UserError: If a set has no benign texts that name a group, or is not at hand.
    """
    if not sets:
        return {}
    tables, left_out = gathered(ToxicitySets(local=data.local, cache=data.cache), sets)
    texts = benign(tables, sample)
    empty = [name for name, table in texts.items() if table.is_empty()]
    if empty or left_out:
        raise UserError(
            f"--sets: {(empty or list(left_out))[0]} has no benign texts that name a group, or is "
            "not at hand; sets that do: hatecheck, identity_templates, toxigen"
        )
    return texts
