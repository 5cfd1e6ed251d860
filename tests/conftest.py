"""For every test: the network is off but for loopback, and the environment names no endpoint."""

import ipaddress
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says how loaded the machine is.
settings.register_profile("evenhand", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("evenhand")
# Two threads that share a matrix of a few thousand numbers mostly wait for each other, and wait
# busily: one thread takes a fifth of the time. Numpy looks when it is first imported, after this.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Ray's workers would make way for all that runs beside them (nice 15), and it would start one per
# core for every driver that comes, whether it has work for it or not.
os.environ |= {
    "RAY_worker_niceness": "0",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}
_REAL_CONNECT = socket.socket.connect
_DATA_BESIDE = Path(__file__).parents[2] / "shared" / "data"


def _loopback_only(self: socket.socket, address: Any) -> None:
    if self.family in (socket.AF_INET, socket.AF_INET6):
        host = "127.0.0.1" if address[0] == "localhost" else address[0]
        if not ipaddress.ip_address(host).is_loopback:
            raise OSError(f"tests must not reach the network: {address}")
    _REAL_CONNECT(self, address)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", _loopback_only)
    for name in (
        "EVENHAND_BASE_URL",
        "EVENHAND_MODEL",
        "EVENHAND_API_KEY",
        "EVENHAND_TRUSTED_HOSTS",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """BBQ's own data, from the folder that EVENHAND_DATA names or from beside the project."""
    folder = Path(os.environ.get("EVENHAND_DATA", _DATA_BESIDE))
    if not (folder / "bbq").is_dir():
        pytest.skip(f"no BBQ data at {folder}; name its folder in EVENHAND_DATA")
    return folder
