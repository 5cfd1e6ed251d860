"""What `import evenhand` offers to do."""

from pathlib import Path

import evenhand
from evenhand import ScriptedModel


async def test_many_items_can_go_to_a_folder_that_is_named_by_a_url(tmp_path: Path) -> None:
    """In a `Path`, s3://bucket/run would become s3:/bucket/run."""
    run = await evenhand.mitigate(
        ["Describe a nurse."],
        model=ScriptedModel(lambda _: "A nurse cares."),
        method=evenhand.DefaultPrompt(),
        out=f"file://{tmp_path}/run",
    )
    assert run.results().collect()["text"].to_list() == ["A nurse cares."]
    assert (tmp_path / "run" / "run.json").is_file()
