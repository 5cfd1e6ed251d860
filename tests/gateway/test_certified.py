"""`require_certified_judges`: a gateway whose judges hold no certificate that passes stays down."""

from pathlib import Path
from typing import Literal

import pytest

from evenhand.cli.execution import Terminal
from evenhand.core.errors import UserError
from evenhand.experiments.certificates import expected_of
from evenhand.findings.certificate import Certificate, CertifiedCheck, CertifiedJudge
from evenhand.gateway.app import GatewayParts
from evenhand.gateway.opening import GatewayRequest, opened, rehearse
from evenhand.instruments.judge.certificate import NEEDED, keep
from evenhand.instruments.judge.design import JudgeDesign
from evenhand.methods import Rate
from tests.errors import assert_names, raises_naming
from tests.gateway.speaking import Speaker, upstream

REQUIRED = "require_certified_judges = true\n"


def certify(folder: Path, model: str, failed: str = "") -> None:
    """Write a certificate of the default audit's size, with one check failed or none."""
    needed = expected_of(Rate(), model)
    state: Literal["pass", "fail"] = "fail" if failed else "pass"
    checks = [
        CertifiedCheck(
            name=name, state="fail" if name == failed else "pass", required=True, says="so it is"
        )
        for name in sorted(NEEDED.checks)
    ]
    made = Certificate(
        kind="judge",
        run={"run.json": "0" * 64, "answers": "0" * 64},
        judge=CertifiedJudge(model=model, served_by=[], described={}),
        method=dict(needed.method),
        prompts=dict(needed.prompts),
        benchmark={
            "version": needed.benchmark["version"],
            "sampling": JudgeDesign().describe(),
            "own": {"scenarios": None, "labels": {}},
            "probes": {"injection": 180},
        },
        margins={"score": 0.25, "win_rate": 0.05},
        limits={"calls": 64},
        seed=None,
        evenhand="0.1.0",
        created="2026-11-01T00:00:00Z",
        calls=2000,
        checks=checks,
        state=state,
    )
    keep(made.sealed(), folder / "certificates")


def order(folder: Path, address: str, policy: str = "", config: str = "") -> GatewayRequest:
    """A gateway before this address whose agents ask the upstream itself."""
    (folder / "policy.toml").write_text(REQUIRED + policy)
    named = f'[judges]\ncertificates = "{folder / "certificates"}"\n'
    (folder / "evenhand.toml").write_text(named + config)
    return GatewayRequest(
        upstream=address,
        policy=str(folder / "policy.toml"),
        config=str(folder / "evenhand.toml"),
    )


async def checked(request: GatewayRequest) -> None:
    """Check a gateway as its command does before it starts."""
    await rehearse(request, Terminal(request.settings(), request.asked_upstream()))


async def test_a_judge_without_a_certificate_is_named_with_the_command_that_makes_one(
    tmp_path: Path,
) -> None:
    speaker = Speaker()
    async with upstream(speaker) as address:
        with pytest.raises(UserError) as refused:
            await checked(order(tmp_path, address))
    said = str(refused.value)
    assert_names(said, "bias_evaluator", "'up'")
    told = said.splitlines()[-1]
    command = f"evenhand audit judge --base-url {address} --model up --out runs/judge-up"
    assert told == command
    assert speaker.seen == [], "nobody was asked"


async def test_a_judge_that_passed_lets_the_gateway_start(tmp_path: Path) -> None:
    certify(tmp_path, "up")
    async with upstream(Speaker()) as address:
        asked = order(tmp_path, address)
        await checked(asked)
        served: list[GatewayParts] = []
        async with opened(asked, served.append):
            assert [len(parts.checkers) for parts in served] == [1]


async def test_a_judge_that_failed_keeps_every_process_down(tmp_path: Path) -> None:
    certify(tmp_path, "up", failed="identity")
    async with upstream(Speaker()) as address:
        asked = order(tmp_path, address)
        with raises_naming(UserError, "certificate", "fail", "identity"):
            await checked(asked)
        with raises_naming(UserError, "certificate", "fail", "identity"):
            async with opened(asked, lambda _: None):
                pass


async def test_the_method_of_one_tenant_is_enough_to_be_refused(tmp_path: Path) -> None:
    """The settings of stardtox can read its judge in a way that no certificate holds for."""
    certify(tmp_path, "up")
    tenant = '[tenants.hr]\nkeys = ["sha256:{}"]\nset = ["read=logprob"]\n'.format("0" * 64)
    async with upstream(Speaker()) as address:
        with raises_naming(UserError, "read=json", "read=logprob"):
            await checked(order(tmp_path, address, tenant))


async def test_a_screen_that_asks_a_language_model_is_a_judge_too(tmp_path: Path) -> None:
    certify(tmp_path, "up")
    async with upstream(Speaker()) as address:
        scorer = f'[scorers.asking]\nkind = "judge"\nbase_url = "{address}"\nmodel = "another"\n'
        asked = order(tmp_path, address, 'screen = "asking"', scorer)
        with raises_naming(UserError, "screen", "'another'"):
            await checked(asked)
        certify(tmp_path, "another")
        await checked(asked)


async def test_without_the_rule_nobody_needs_a_certificate(tmp_path: Path) -> None:
    async with upstream(Speaker()) as address:
        asked = order(tmp_path, address)
        Path(str(asked.policy)).write_text("require_certified_judges = false")
        await checked(asked)
