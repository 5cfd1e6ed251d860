"""Commands of an environment, run in a folder of their own against a stand-in for a model."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compat.standin import MODEL, Standin

BIN = Path(sys.executable).parent


class Commands:
    """The commands that are installed beside this Python."""

    def __init__(self, folder: Path, standin: Standin) -> None:
        self.folder, self.standin = folder, standin
        self.data = Path(os.environ["EVENHAND_DATA"]).resolve()
        self.served = ("--base-url", standin.url, "--model", MODEL)
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "PATH": f"{BIN}:{os.environ['PATH']}", "EVENHAND_DATA": str(self.data),
            "INSPECT_EVALS_CACHE_DIR": str(folder / "inspect_evals"), "HF_HOME": str(folder / "hf"),
            "HF_HUB_OFFLINE": "1", "XDG_DATA_HOME": str(folder / "share"),
            "STANDIN_API_KEY": "none-at-all", "STANDIN_BASE_URL": standin.url,
        }  # fmt: skip

    def ran(
        self, *command: str, also: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(BIN / command[0]), *command[1:]],
            cwd=self.folder,
            env={**self.environment, **(also or {})},
            capture_output=True,
            text=True,
            check=False,
        )

    def evenhand(self, *command: str) -> dict[str, Any]:
        """Run a command of ours, and read what it prints for machines."""
        ran = self.ran("evenhand", *command, "--json")
        assert ran.returncode in (0, 2), ran.stderr
        found: dict[str, Any] = json.loads(ran.stdout)
        return found
