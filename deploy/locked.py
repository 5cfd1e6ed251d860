"""Print the part of requirements/ci.txt that the gateway needs, checksums and all.

The lock holds what CI needs, which is ten times more. pip says which packages the gateway needs at
the locked versions; their lines are copied from the lock. What is not locked is an error.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = "hatchling"  # builds evenhand itself, without a network


def blocks(lock: str) -> dict[str, str]:
    """The lines of each package in the lock, by its plain name."""
    whole = re.finditer(r"^([\w.-]+)==[^\n]*(?:\n +--hash[^\n]*)*", lock, re.MULTILINE)
    return {plain(block[1]): block[0] for block in whole}


def plain(name: str) -> str:
    """A package's name as all its spellings are."""
    return re.sub(r"[-_.]+", "-", name).lower()


def wanted(project: str) -> list[str]:
    """What evenhand and its extra for the gateway name in pyproject.toml."""
    told = tomllib.loads(project)["project"]
    return [*told["dependencies"], *told["optional-dependencies"]["gateway"], BUILD]


def chosen(lock: str, requirements: list[str]) -> list[str]:
    """The names that pip would install for these at the locked versions."""
    with tempfile.TemporaryDirectory() as folder:
        versions = Path(folder, "versions.txt")
        versions.write_text("\n".join(re.findall(r"^[\w.-]+==[^\s\\]+", lock, re.MULTILINE)))
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run"]
        command += ["--ignore-installed", "--constraint", str(versions), "--report", "-"]
        ran = subprocess.run(  # noqa: S603 - our own words
            [*command, *requirements], stdout=subprocess.PIPE, text=True, check=True
        )
    return [one["metadata"]["name"] for one in json.loads(ran.stdout)["install"]]


def copied(lock: str, names: list[str]) -> str:
    """The lines of these packages; it ends the program if one is not in the lock."""
    known = blocks(lock)
    missing = sorted(name for name in map(plain, names) if name not in known)
    if missing:
        sys.exit(f"not in requirements/ci.txt: {', '.join(missing)}; run `make lock`")
    return "".join(f"{known[plain(name)]}\n" for name in names)


def main() -> None:
    """Print the lines."""
    lock = (ROOT / "requirements/ci.txt").read_text()
    names = chosen(lock, wanted((ROOT / "pyproject.toml").read_text()))
    sys.stdout.write(copied(lock, names))


if __name__ == "__main__":
    main()
