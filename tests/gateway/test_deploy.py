"""The examples under deploy/ fit the code: policies, command lines, ports, paths, time to stop.

The chart is rendered by Helm itself, which a package brings.
"""

import importlib.util
import re
import shlex
import subprocess
from importlib.metadata import distribution
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from evenhand.cli.app import load
from evenhand.gateway.keys import Keyring
from evenhand.gateway.metrics import Metrics
from evenhand.gateway.opening import CLOSING, method_of
from evenhand.gateway.policy import Policy, read_policy
from tests.errors import raises_naming

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
CHART = DEPLOY / "helm/evenhand-gateway"
[HELM] = [file.locate() for file in distribution("helm-binary").files or () if file.name == "helm"]


def rendered(*values: str) -> dict[str, Any]:
    """The objects of the chart by kind, with these values."""
    sets = [word for value in values for word in ("--set", value)]
    run = subprocess.run(
        [HELM, "template", "eg", CHART, *sets], capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise ValueError(run.stderr)
    objects = [one for one in yaml.safe_load_all(run.stdout) if one]
    return {f"{one['kind']}{'s' if one['metadata']['name'] != 'eg' else ''}": one
            for one in objects}  # fmt: skip


OBJECTS = rendered()
POD = OBJECTS["Deployment"]["spec"]["template"]["spec"]
CONTAINER = POD["containers"][0]
GATEWAYS = {name: one for name, one in COMPOSE["services"].items() if name.startswith("gateway")}
README = [
    shlex.split(line)[1:]
    for line in (DEPLOY / "README.md").read_text().splitlines()
    if line.startswith("evenhand ")
]
COMMANDS = [CONTAINER["args"], *(one["command"] for one in GATEWAYS.values()), *README]


def policies(folder: Path) -> list[Policy]:
    mapped = folder / "policy.toml"
    mapped.write_text(OBJECTS["ConfigMap"]["data"]["policy.toml"])
    return [read_policy(DEPLOY / "policy.toml"), read_policy(mapped)]


def parsed(words: list[str]) -> dict[str, Any]:
    """What the command line makes of words; it raises where it would end with a usage error."""
    command, name, *rest = words
    context = load(command).commands[name].make_context(name, list(rest))
    return {"command": name, **context.params}


def test_there_are_command_lines_to_look_at() -> None:
    assert len(GATEWAYS) == 2
    assert len(README) == 2


@pytest.mark.parametrize("words", COMMANDS, ids=range(len(COMMANDS)))
def test_every_command_line_is_one_of_ours(words: list[str]) -> None:
    assert words[0] == "gateway"
    assert parsed(words)
    with raises_naming(Exception, "--no-such-option"):
        parsed([*words, "--no-such-option"])


def test_the_policies_are_accepted_and_let_nobody_in_by_default(tmp_path: Path) -> None:
    for policy in policies(tmp_path):
        assert policy.tenants, "without tenants it would not listen elsewhere"
        assert policy.operators
        Keyring({name: one.keys for name, one in policy.tenants.items()})
        Keyring({"operators": policy.operators})
        for check in policy.checks():
            method_of(check)
        hashes = {*policy.operators, *(key for one in policy.tenants.values() for key in one.keys)}
        assert hashes == {f"sha256:{'0' * 64}"}


def test_both_examples_have_the_same_policy(tmp_path: Path) -> None:
    one, other = policies(tmp_path)
    assert one.sha256() == other.sha256()


def test_one_port_is_meant_everywhere() -> None:
    port = parsed(["gateway", "serve", "--upstream", "http://x/v1"])["port"]
    served = {parsed(words)["port"] for words in COMMANDS if words[1] == "serve"}
    assert served == {port}
    assert f"EXPOSE {port}\n" in DOCKERFILE
    assert f"http://127.0.0.1:{port}/health" in DOCKERFILE
    assert {one["ports"][0].rpartition(":")[2] for one in GATEWAYS.values()} == {str(port)}
    assert CONTAINER["ports"] == [{"name": "http", "containerPort": port}]
    assert OBJECTS["Service"]["spec"]["ports"][0]["port"] == port
    assert OBJECTS["NetworkPolicy"]["spec"]["ingress"][0]["ports"][0]["port"] == port


def test_who_is_well_and_who_is_ready_is_asked_where_the_gateway_says_it() -> None:
    routes = (ROOT / "src/evenhand/gateway/app.py").read_text()
    probes = {name: CONTAINER[f"{name}Probe"]["httpGet"] for name in ("readiness", "liveness")}
    assert probes == {
        "readiness": {"path": "/ready", "port": "http"},
        "liveness": {"path": "/health", "port": "http"},
    }
    for path in ("/health", "/ready"):
        assert f'("GET", "{path}")' in routes


def test_there_is_time_to_finish_what_is_under_way(tmp_path: Path) -> None:
    for_compose, for_kubernetes = policies(tmp_path)
    first = int(CONTAINER["lifecycle"]["preStop"]["exec"]["command"][1])
    needed = first + for_kubernetes.grace + CLOSING
    assert POD["terminationGracePeriodSeconds"] > needed
    for one in GATEWAYS.values():
        assert int(one["stop_grace_period"].removesuffix("s")) > for_compose.grace + CLOSING


def test_the_chart_has_what_operators_need_and_what_they_turn_off_is_gone() -> None:
    usual = {"ConfigMap", "Deployment", "Service", "PersistentVolumeClaim",
             "HorizontalPodAutoscaler", "PodDisruptionBudget", "NetworkPolicy"}  # fmt: skip
    assert set(OBJECTS) == usual
    assert "replicas" not in OBJECTS["Deployment"]["spec"], "the autoscaler says how many"
    off = ("autoscaling.enabled=false", "networkPolicy.enabled=false", "audit=")
    other = rendered(*off, "replicas=3", "evidence.existingClaim=mine", "monitoring.enabled=true")
    gone = {"HorizontalPodAutoscaler", "PersistentVolumeClaim", "NetworkPolicy"}
    assert set(other) == usual - gone | {"ServiceMonitor", "PrometheusRule", "ConfigMaps"}
    assert other["Deployment"]["spec"]["replicas"] == 3
    assert "--audit" not in other["Deployment"]["spec"]["template"]["spec"]["containers"][0]["args"]
    volumes = other["Deployment"]["spec"]["template"]["spec"]["volumes"]
    assert {"claimName": "mine"} in [volume.get("persistentVolumeClaim") for volume in volumes]


def test_the_chart_carries_the_alerts_and_the_dashboard_as_they_are() -> None:
    objects = rendered("monitoring.enabled=true")
    alerts = yaml.safe_load((CHART / "files/alerts.yaml").read_text())
    assert objects["PrometheusRule"]["spec"] == alerts
    [dashboard] = objects["ConfigMaps"]["data"].values()
    assert dashboard == (CHART / "files/dashboard.json").read_text()


def test_pods_are_added_by_a_figure_that_the_gateway_gives() -> None:
    metrics = OBJECTS["HorizontalPodAutoscaler"]["spec"]["metrics"]
    named = [one["pods"]["metric"]["name"] for one in metrics if one["type"] == "Pods"]
    assert named == ["evenhand_gateway_in_flight"]
    assert f"{named[0]} " in Metrics((), ()).text().decode()


@pytest.mark.parametrize(
    "value",
    ["audit=postgresql://u:secret@postgres/x", "upstream=ftp://x", "image=", "graceSeconds=20",
     "no_such_value=1"],
)  # fmt: skip
def test_values_that_cannot_be_meant_are_refused(value: str) -> None:
    with raises_naming(ValueError, value.partition("=")[0]):
        rendered(value)


def test_what_is_mounted_is_what_is_named() -> None:
    mounts = {one["mountPath"] for one in CONTAINER["volumeMounts"]}
    named = parsed(CONTAINER["args"])
    assert {str(Path(named["policy"]).parent), named["evidence"]} <= mounts
    assert named["upstream_key_env"] in {one["name"] for one in CONTAINER["env"]}
    folders = set()
    for one in GATEWAYS.values():
        said = parsed(one["command"])
        assert said["upstream_key_env"] in one["environment"]
        places = dict(volume.split(":")[1::-1] for volume in one["volumes"])
        assert str(said["policy"]) in places
        folders.add(places[said["evidence"]])
    assert len(folders) == 2, "two processes must not write to one folder"


def test_evidence_of_two_pods_is_never_one_folder() -> None:
    assert parsed(CONTAINER["args"])["replica"] == "$(POD_NAME)"
    [name] = [one for one in CONTAINER["env"] if one["name"] == "POD_NAME"]
    assert name["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}


def test_no_key_stands_in_a_file() -> None:
    secret = [one["valueFrom"] for one in CONTAINER["env"] if one["name"] != "POD_NAME"]
    assert all(one.keys() == {"secretKeyRef"} for one in secret)
    for one in COMPOSE["services"].values():
        for name, value in one.get("environment", {}).items():
            assert value.startswith("${") or name in ("POSTGRES_USER", "POSTGRES_DB")


def test_it_is_not_root() -> None:
    user = re.findall(r"^USER (\d+)$", DOCKERFILE, re.MULTILINE)
    assert user == [str(POD["securityContext"]["runAsUser"])]
    assert POD["securityContext"]["runAsNonRoot"] is True


# -- the lock ----------------------------------------------------------------------------------


@pytest.fixture
def locked() -> ModuleType:
    spec = importlib.util.spec_from_file_location("locked", DEPLOY / "locked.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_package_that_the_gateway_names_is_locked_with_its_checksum(
    locked: ModuleType,
) -> None:
    known = locked.blocks((ROOT / "requirements/ci.txt").read_text())
    named = locked.wanted((ROOT / "pyproject.toml").read_text())
    names = [locked.plain(re.match(r"[\w-]+", one)[0]) for one in named]  # type: ignore[index]
    assert "granian" in names
    for name in names:
        checksums = r"[\w.-]+==\S+ \\\n( +--hash=sha256:[0-9a-f]{64}( \\)?\n?)+"
        assert re.fullmatch(checksums, known[name])


def test_what_is_not_locked_is_an_error(locked: ModuleType) -> None:
    lock = (ROOT / "requirements/ci.txt").read_text()
    with raises_naming(SystemExit, "requirements/ci.txt", "un-locked"):
        locked.copied(lock, ["aiohttp", "Un_Locked"])
    lines = locked.copied(lock, ["aiohttp", "Prometheus_Client"]).splitlines()
    packages = [line for line in lines if not line.startswith(" ")]
    assert [line.partition("==")[0] for line in packages] == ["aiohttp", "prometheus-client"]
