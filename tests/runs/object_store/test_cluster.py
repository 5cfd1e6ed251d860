"""A table in the store, repaired on a cluster, into the store."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.runs.store import RunReader
from tests.runs.cluster.conftest import Upstream

from .conftest import BUCKET

EVENHAND = str(Path(sys.executable).parent / "evenhand")


def test_a_table_in_the_store_is_repaired_by_a_cluster_into_the_store(
    store: Any, tmp_path: Path
) -> None:
    prompts = [f"Describe neighbour {number}." for number in range(80)]
    for number in range(2):
        shard = pl.DataFrame({"prompt": prompts[number::2]})
        shard.write_parquet(tmp_path / f"{number}.parquet")
        store.put(str(tmp_path / f"{number}.parquet"), f"{BUCKET}/table/{number}.parquet")
    server = Upstream(tmp_path / "server", seed=5, rate=0.0, latency=0.02)
    try:
        told = {"EVENHAND_BASE_URL": server.url, "EVENHAND_MODEL": "pretended"}
        out = f"s3://{BUCKET}/repaired"
        subprocess.run(
            [EVENHAND, "mitigate", f"s3://{BUCKET}/table", "--engine", "ray", "--out", out],
            env={**os.environ, **told},
            check=True,
            capture_output=True,
            timeout=800,
        )
    finally:
        server.close()
    run = RunReader(out)
    assert run.verify() > 1
    assert run.results().collect()["prompt"].to_list() == prompts[0::2] + prompts[1::2]
    assert not store.exists(f"{BUCKET}/repaired/journal")
