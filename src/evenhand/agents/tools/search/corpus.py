"""A folder of .txt and .md files, or a JSONL file, searched on this machine with tantivy.

Nothing leaves the machine, and the fingerprint of the files is part of the run record: the same
corpus gives the same hits.
"""

import hashlib
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from evenhand.agents.tools.search.base import Hit, hit, in_thread
from evenhand.agents.tools.search.privacy import is_function_word
from evenhand.core.errors import SearchFailed, UserError

_IN_MEMORY = 32 * 1024 * 1024  # bytes of text; a larger index is kept on disk
_WRITER_BYTES = 64 * 1024 * 1024
Document = tuple[str, str, str]  # url, title, text


class Corpus:
    """
    >>> engine = Corpus(Path("evidence/"))
    """

    name = "corpus@1"
    gives_pages = True

    def __init__(self, path: Path, *, cache: Path | None = None) -> None:
        self._path = path
        self._cache = cache
        self._fingerprint, self._bytes = _fingerprint(path)
        if not path.is_dir():
            for _ in documents(path):  # a line that cannot be read ends the command, not the run
                pass
        self._index: Any = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_index": None, "_lock": None}  # each process opens its own

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "_lock": threading.Lock()})

    def describe(self) -> dict[str, Any]:
        return {"path": self._path.name, "sha256": self._fingerprint}

    async def close(self) -> None:
        self._index = None

    async def search(self, query: str, most: int, deadline: float) -> tuple[Hit, ...]:  # noqa: ARG002
        return await in_thread(self._search, query, most)

    def _search(self, query: str, most: int) -> tuple[Hit, ...]:
        terms = [word for word in re.findall(r"\w+", query.lower()) if not is_function_word(word)]
        if not terms:
            return ()
        with self._lock:
            if self._index is None:
                self._index = self._opened()
        parsed_query = self._index.parse_query(" ".join(terms), ["title", "text"])
        searcher = self._index.searcher()
        docs = (searcher.doc(address) for _, address in searcher.search(parsed_query, most).hits)
        return tuple(
            hit(entry["url"][0], entry["title"][0], entry["text"][0], query) for entry in docs
        )

    def _opened(self) -> Any:
        try:
            import tantivy  # noqa: PLC0415
        except ImportError:
            raise SearchFailed("a corpus needs tantivy: pip install 'evenhand[search]'") from None
        if _fingerprint(self._path)[0] != self._fingerprint:
            raise SearchFailed(f"the corpus {self._path.name} is not what it was at the start")
        builder = tantivy.SchemaBuilder().add_text_field("url", stored=True, tokenizer_name="raw")
        for name in ("title", "text"):
            builder = builder.add_text_field(name, stored=True, tokenizer_name="en_stem")
        schema = builder.build()
        if self._cache is None or self._bytes <= _IN_MEMORY:
            return _filled(tantivy.Index(schema), self._path)
        index_folder = self._cache / "corpora" / self._fingerprint
        if not index_folder.is_dir():
            self._build(tantivy, schema, index_folder)
        return tantivy.Index(schema, path=str(index_folder))

    def _build(self, tantivy: Any, schema: Any, index_folder: Path) -> None:
        """Beside its place first: a half-built index is never opened, and two may build at once."""
        index_folder.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(dir=index_folder.parent))
        try:
            _filled(tantivy.Index(schema, path=str(building)), self._path)
            building.rename(index_folder)
        except OSError:
            if not index_folder.is_dir():
                raise
        finally:
            shutil.rmtree(building, ignore_errors=True)


def _filled(index: Any, path: Path) -> Any:
    import tantivy  # noqa: PLC0415

    writer = index.writer(heap_size=_WRITER_BYTES, num_threads=1)  # one: the order is the files'
    for url, title, text in documents(path):
        writer.add_document(tantivy.Document(url=url, title=title, text=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return index


def documents(path: Path) -> Iterator[Document]:
    """Every document, in the order of the files' names or of the lines."""
    if path.is_dir():
        for file in _files(path):
            text = file.read_text("utf-8", "replace")
            heading = re.match(r"#+\s*(.+)", text)
            yield (
                f"corpus:{file.relative_to(path).as_posix()}",
                heading[1] if heading else file.stem,
                text,
            )
        return
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield _document(line, path.name, number)


def _document(line: bytes, name: str, number: int) -> Document:
    try:
        entry = orjson.loads(line)
        title, text = entry["title"], entry["text"]
        url = entry.get("url") or f"corpus:{name}#{number}"
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        title = text = url = None
    if not (isinstance(title, str) and isinstance(text, str) and isinstance(url, str)):
        raise UserError(
            f'{name}, line {number} is not a document. Write it as {{"title": "…", "text": "…"}}.'
        )
    return url, title, text


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.suffix in (".txt", ".md"))


def _fingerprint(path: Path) -> tuple[str, int]:
    """Of every file's name and bytes; and how many bytes there are."""
    files = _files(path) if path.is_dir() else [path]
    links = [file for file in files if file != path and file.is_symlink()]
    if links:  # what it holds goes to models, so it must not name files that lie elsewhere
        raise UserError(
            f"[search] path: {links[0]} is a link, and links are not followed. Copy the file to "
            "that place."
        )
    if not files or not all(file.is_file() for file in files):
        raise UserError(
            f"[search] path: {path} is not a JSONL file or a folder with .txt or .md files. "
            "Correct `path` in the config."
        )
    digest, size = hashlib.sha256(), 0
    for file in files:
        name = file.relative_to(path).as_posix() if path.is_dir() else file.name
        with file.open("rb") as opened:
            content = hashlib.file_digest(opened, "sha256")
        digest.update(f"{name}\0{content.hexdigest()}\n".encode())
        size += file.stat().st_size
    return digest.hexdigest(), size
