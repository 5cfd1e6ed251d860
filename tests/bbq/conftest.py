"""BBQ's own data, from the folder that EVENHAND_DATA names or from beside the project."""

import os
from pathlib import Path

import polars as pl
import pytest

from evenhand.benchmarks.bbq import BbqData

_BESIDE = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="session")
def data_folder() -> Path:
    folder = Path(os.environ.get("EVENHAND_DATA", _BESIDE))
    if not (folder / "bbq").is_dir():
        pytest.skip(f"no BBQ data at {folder}; name its folder in EVENHAND_DATA")
    return folder


@pytest.fixture(scope="session")
def records(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    return BbqData(local=data_folder, cache=tmp_path_factory.mktemp("cache")).records()
