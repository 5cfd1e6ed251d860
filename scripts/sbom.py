"""`make sbom`: what a release was built and tested with, as a CycloneDX list beside its wheel.

The components are those of requirements/, with the checksums that CI installs them by; licences are
as the installed packages state them.
"""

import json
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCKED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)((?:[^\n]*\\\n)*[^\n]*)", re.M)


def components(lock: str) -> list[dict[str, Any]]:
    """One for each pinned package of a requirements file."""
    return [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
            **_licences(name),
            **_checksums(rest),
        }
        for name, version, rest in LOCKED.findall(lock)
    ]


def _checksums(rest: str) -> dict[str, Any]:
    """Properties, since a hash of CycloneDX is of one file; one of these files is installed."""
    found = re.findall(r"--hash=sha256:([0-9a-f]{64})", rest)
    return {"properties": [{"name": "sha256", "value": one} for one in found]} if found else {}


def _licences(name: str) -> dict[str, Any]:
    try:
        stated = metadata(name).get("License-Expression")
    except PackageNotFoundError:
        stated = None
    return {"licenses": [{"expression": stated}]} if stated else {}


def document(locks: list[str]) -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": f"pkg:pypi/{name}@{version}",
                "name": name,
                "version": version,
                "purl": f"pkg:pypi/{name}@{version}",
                "licenses": [{"expression": project["license"]}],
            }
        },
        "components": sorted(
            (one for lock in locks for one in components(lock)), key=lambda one: str(one["name"])
        ),
    }


if __name__ == "__main__":
    locks = [(ROOT / "requirements" / name).read_text() for name in ("ci.txt", "torch.txt")]
    made = document(locks)
    component = made["metadata"]["component"]
    out = Path(sys.argv[1]) / f"{component['name']}-{component['version']}.cdx.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(made, indent=1) + "\n")
    sys.stdout.write(f"{out}: {len(made['components'])} components\n")
