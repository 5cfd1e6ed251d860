"""The policy file: what is in force for whom, and what is refused before anything is served."""

from pathlib import Path

import pytest

from evenhand.core.errors import UserError
from evenhand.gateway.opening import GatewayRequest
from evenhand.gateway.policy import Policy, read_policy
from evenhand.scorers.kinds import staged

FILE = """
on_failure = "stored_text"
stored_text = "Please ask otherwise."
deadline = 4.0

[tenants.hr]
keys = ["sha256:0"]
on_failure = "block"
at_once = 3

[tenants.hr.routes."/completions"]
mode = "observe"
"""


def read(tmp_path: Path, text: str) -> Policy:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    return read_policy(path)


def test_a_route_of_a_tenant_goes_before_the_tenant_and_the_tenant_before_all(
    tmp_path: Path,
) -> None:
    policy = read(tmp_path, FILE)
    everybody = policy.check_for("anybody", "/chat/completions")
    tenant = policy.check_for("hr", "/chat/completions")
    route = policy.check_for("hr", "/completions")
    assert (everybody.on_failure, everybody.mode, everybody.deadline) == ("stored_text", "hold", 4)
    assert (tenant.on_failure, tenant.mode, tenant.deadline) == ("block", "hold", 4)
    assert (route.on_failure, route.mode, route.deadline) == ("block", "observe", 4)
    assert set(policy.checks()) == {everybody, tenant, route}
    assert policy.allowances()["hr"].at_once == 3


@pytest.mark.parametrize(
    "text",
    [
        "on_failur = 'block'",
        "mode = 'window'\nrequire_evidence = true",
        "band = [0.9, 0.1]",
        "band = [0.1, nan]",
        "deadline = 0",
        "on_failure = 'stored_text'",
        "on_failure = 'stored_text'\nstored_text = '  '",
        "calls = 0",
        "[tenants.hr]",
        "[tenants.hr]\nkeys = []",
        "[tenants.hr]\nkeys = ['sha256:0']\nquota = 7",
        "[tenants.hr]\nkeys = ['sha256:0']\nroutes = {'/completions' = {mode = 'off'}}",
        "[tenants.hr]\nkeys = ['sha256:0']\nroutes = {'/completions' = {content = 'off'}}",
        "[tenants.hr]\nkeys = ['sha256:0']\nroutes = {'/v1/completions' = {mode = 'hold'}}",
        "[tenants.hr]\nkeys = ['sha256:0']\n[tenants.hr.check]\nmode = 'hold'",
        "tenants = 3",
        "at_once = '7'",
        "= =",
    ],
)
def test_what_does_not_hold_together_is_refused_at_the_start(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError):
        read(tmp_path, text)


def test_two_policies_that_differ_in_anything_have_two_hashes(tmp_path: Path) -> None:
    changed = FILE.replace("at_once = 3", "at_once = 4")
    hashes = {read(tmp_path, text).sha256() for text in (FILE, changed, "", FILE)}
    assert len(hashes) == 3


def test_the_hash_of_a_policy_covers_the_bytes_of_its_screens(tmp_path: Path) -> None:
    screen = tmp_path / "screen.json"
    (tmp_path / "policy.toml").write_text(f"screen = '{screen}'\n")
    request = GatewayRequest(upstream="http://127.0.0.1:1/v1", policy=str(tmp_path / "policy.toml"))
    hashes = []
    for words in ("{}", "{ }", "{}"):
        screen.write_text(words)
        hashes.append(request.read().sha256())
    assert hashes[0] == hashes[2] != hashes[1]
    screen.unlink()
    with pytest.raises(UserError, match="cannot be read"):
        request.read()


def test_the_hash_of_a_policy_covers_the_weights_of_a_screen_by_name() -> None:
    policy = GatewayRequest(upstream="http://127.0.0.1:1/v1").read()
    assert policy.screens == {"staged": staged().name}
    other = policy.model_copy(update={"screens": {"staged": "staged@1+000000000000"}})
    assert policy.sha256() != other.sha256()


def test_no_file_says_the_checksums_of_its_screens(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="screens"):
        read(tmp_path, "[screens]\noffline = 'ab'\n")
