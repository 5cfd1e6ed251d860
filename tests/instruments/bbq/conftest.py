"""BBQ's own data as a table."""

from pathlib import Path

import polars as pl
import pytest

from evenhand.instruments.bbq.data import BbqData


@pytest.fixture(scope="session")
def records(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    return BbqData(local=data_folder, cache=tmp_path_factory.mktemp("cache")).records()
