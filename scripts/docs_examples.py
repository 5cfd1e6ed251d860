"""Shows an example or a drawn tree in a docstring as code on the reference pages.

Our docstrings have `>>>` lines without a heading; Markdown takes these for quotations.
"""

from typing import Any

import griffe


class Examples(griffe.Extension):
    """Puts a fence around each paragraph that begins with `>>>` or draws a tree."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        del kwargs
        if obj.docstring is not None:
            paragraphs = obj.docstring.value.split("\n\n")
            obj.docstring.value = "\n\n".join(_fenced(one) for one in paragraphs)


def _fenced(paragraph: str) -> str:
    if paragraph.startswith(">>> "):
        return f"```pycon\n{paragraph}\n```"
    return f"```text\n{paragraph}\n```" if "├──" in paragraph else paragraph
