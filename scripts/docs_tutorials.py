"""Run the notebooks in docs/tutorials and write each as the page that the site shows, with what its
cells print: `python scripts/docs_tutorials.py`. A test runs them too and compares the pages."""

import io
import json
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


def page_of(notebook: Path) -> str:
    """Run the cells of a notebook in one namespace, from the top folder, and give its page."""
    parts: list[str] = []
    names: dict[str, Any] = {}
    for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        said = io.StringIO()
        with chdir(ROOT), redirect_stdout(said):
            exec(compile(text, notebook.name, "exec"), names)  # noqa: S102  # our own notebooks
        parts.append(f"```python\n{text}\n```")
        if said.getvalue().strip():
            parts.append(f"```text\n{said.getvalue().rstrip()}\n```")
    parts.append(f"This page is a notebook, run as it stands: [{notebook.name}]({notebook.name}).")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Write all pages anew."""
    for notebook in NOTEBOOKS:
        notebook.with_suffix(".md").write_text(page_of(notebook), "utf-8")


if __name__ == "__main__":
    main()
