"""Judges: the scenarios of their audits, and custom harm policies with the audit of each."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Unpack

from evenhand.api import inputs
from evenhand.api.configured import ConfigServices, request_of
from evenhand.api.inputs import Model
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from evenhand.experiments.config import Config, ModelConfig
from evenhand.experiments.harms import HarmLine, benign_texts, list_harms
from evenhand.experiments.judge_scenarios import USUAL, scenario_tasks, write_scenarios
from evenhand.experiments.measuring import Measurement, concluded
from evenhand.experiments.measuring import measure as measured
from evenhand.experiments.request import Request, Watch, with_player
from evenhand.experiments.settings import RunOptions, RunSettings, show_settings
from evenhand.findings.audit import Audit
from evenhand.instruments import DataFolder
from evenhand.instruments.harm.certificate import refuse_unreadable
from evenhand.instruments.harm.instrument import HarmAudit
from evenhand.instruments.harm.policy import OwnHarm
from evenhand.instruments.judge.design import GeneratedScenarios
from evenhand.methods.judge_text import AS_WRITTEN, SWAPPED, HarmCheck
from evenhand.methods.judging import TwoResponses
from evenhand.models.base import ChatModel
from evenhand.scorers import ScorerModel
from evenhand.scorers.harm import HarmJudge


async def judge_scenarios(
    *,
    model: Model | None = None,
    bases: int = USUAL.bases,
    derived: int = USUAL.derived,
    sample_seed: int = 0,
    watch: Watch | None = None,
    **settings: Unpack[RunOptions],
) -> GeneratedScenarios:
    """Let a model write the responses that judges are audited on, two for each of our tasks.

    Args:
        model: Model that writes.
        bases: Number of base scenarios, of 63.
        derived: Number of scenarios per base, of 10.
        sample_seed: Random seed for the sample.
        watch: Receives progress events.
        **settings: Settings of the run, of which `out` is required: `RunOptions`.

    Returns:
        The scenarios with two responses. They are also in scenarios.jsonl in `out`, which
        `audit("judge", options={"scenarios": …})` takes.

    Raises:
        UserError: If the settings are invalid, or a cap stopped the run.

    Example:
        >>> made = evenhand.judge_scenarios(bases=12, model=model, out="runs/written")
        >>> len(made.scenarios), made.asked
    """
    source = await asyncio.to_thread(scenario_tasks, bases, derived, sample_seed)
    run_settings = inputs.settings_of(settings)
    request = inputs.request_of(source, TwoResponses(), run_settings, model=model)
    result = await write_scenarios(request, watch or Watch())
    inputs.whole(result.ended, "every task had its responses")
    assert result.scenarios is not None  # the run is whole, and no pilot
    return result.scenarios


async def harms(config: str | Path | None = None) -> tuple[HarmLine, ...]:
    """List the harms that a config file declares, and whether each may be used.

    Args:
        config: The config file. Defaults to evenhand.toml, if there is one.

    Returns:
        Each harm with its judge, the number of its examples, and its certificate.

    Raises:
        UserError: If the file cannot be read.

    Example:
        >>> [line.harm for line in evenhand.harms() if line.passes]
    """
    return tuple(
        await asyncio.to_thread(
            lambda: list_harms(configuration.load(inputs.path_of(config), None, None))
        )
    )


async def audit_harm(
    name: str,
    *,
    config: str | Path | None = None,
    sets: Sequence[str] = (),
    sample: int = 100,
    data: str | Path | None = None,
    watch: Watch | None = None,
    **settings: Unpack[RunOptions],
) -> Audit:
    """Audit a custom harm policy, and write its certificate to the folder that the config names.

    Args:
        name: A harm that the config declares.
        config: The config file. Defaults to evenhand.toml.
        sets: Names of public sets whose benign texts are asked about too.
        sample: Number of texts per set.
        data: Dataset directory. Default: `EVENHAND_DATA`.
        watch: Receives progress events.
        **settings: Settings of the run, of which `out` is required: `RunOptions`.

    Returns:
        Every check with its outcome, and the state of all together.

    Raises:
        UserError: If the config has no such harm, or a cap stopped the run.

    Example:
        >>> evenhand.audit_harm("tenants", out="runs/harm-tenants").state
    """
    loaded = configuration.load(inputs.path_of(config), None, None)
    if config is None:
        configuration.harm_by_name(loaded, name).refuse_outside(Path.cwd())
    measurement, request = await asyncio.to_thread(
        harm_check,
        loaded,
        name,
        inputs.settings_of(settings),
        inputs.folder_of(data),
        sets=sets,
        sample=sample,
    )
    result = await measured(measurement, request, watch or Watch())
    inputs.whole(result.ended, "every example was judged")
    if result.report is None:
        raise UserError(inputs.why_no_report(result.ended, request.settings.out))
    instrument, options = measurement.instrument, measurement.options
    return await asyncio.to_thread(concluded, instrument, options, result.report)


def harm_check(
    config: Config,
    name: str,
    settings: RunSettings,
    data: DataFolder,
    *,
    sets: Sequence[str] = (),
    sample: int = 100,
) -> tuple[Measurement, Request]:
    """Make the measurement and the request that check a harm of a config.

    Args:
        config: The config.
        name: The harm.
        settings: The settings of the run.
        data: The folder of data sets.
        sets: Names of public sets whose benign texts are asked about too.
        sample: Texts of each set.

    Returns:
        The audit, and the request that asks the judge of the harm alone.

    Raises:
        UserError: If the harm is unknown, or a dataset is not available.
    """
    harm = configuration.harm_by_name(config, name)
    model = config.models[harm.config.judge]
    texts = benign_texts(data, sets, sample)
    audit = HarmAudit(harm, texts, refuse_unreadable(config.certificates))
    measurement = Measurement(
        instrument=audit, options=audit.options(), services=ConfigServices(config)
    )
    items = measurement.items(data)
    request = request_of(config.only(model), items, HarmCheck(), settings, is_audit=True)
    for agent, swapped in ((AS_WRITTEN, False), (SWAPPED, True)):
        request = with_player(request, agent.role, partial(_player, harm, model, swapped))
    return measurement, request


def _player(harm: OwnHarm, model: ModelConfig, swapped: bool) -> ChatModel:
    endpoint = configuration.endpoint(model, harm.model)
    return ScorerModel(HarmJudge(harm.asked, endpoint, swapped=swapped))


show_settings(judge_scenarios, audit_harm)
