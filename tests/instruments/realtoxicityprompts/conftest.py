"""The prompts of RealToxicityPrompts that DecodingTrust carries."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def rtp_folder(data_folder: Path) -> Path:
    if not (data_folder / "rtp-decodingtrust").is_dir():
        pytest.skip(f"no prompts at {data_folder}; name their folder in EVENHAND_DATA")
    return data_folder
