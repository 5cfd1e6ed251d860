"""A `litellm` in the place of the real one, which is in no lock of ours."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

FAKE = Path(__file__).parent / "fake"


@pytest.fixture
def litellm(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = spec_from_file_location("litellm", FAKE / "litellm.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "litellm", module)
    return module
