"""SQuAD v2's development set."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def squad_folder(data_folder: Path) -> Path:
    if not (data_folder / "squad_v2").is_dir():
        pytest.skip(f"no SQuAD at {data_folder}; name its folder in EVENHAND_DATA")
    return data_folder
