"""The three forms in which requests go out in batches: OpenAI's files and batches, Anthropic's
message batches, and the files of `vllm run-batch`.

The bodies for OpenAI and vLLM are those of the direct wire (`wire.py`). Anthropic's batches speak
its own messages. What each provider does is listed in docs/batch.md.
"""

import asyncio
import math
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from evenhand.core import environment
from evenhand.core.errors import ModelRefused, UserError
from evenhand.core.prices import OWN_BATCH
from evenhand.models import wire
from evenhand.models.base import ModelReply, ModelRequest
from evenhand.models.batch import (
    AskAgain,
    BatchFolder,
    BatchForm,
    BatchState,
    NotNow,
    NotSure,
    OpenBatch,
)
from evenhand.models.http_client import RETRY_STATUSES, NoAnswer, retry_after
from evenhand.models.keys import Redactor

if TYPE_CHECKING:
    from evenhand.models.endpoint import Endpoint

_METADATA = "evenhand"  # the key under which OpenAI keeps ours
_MOST_RESULTS = 1 << 31  # bytes; our choice: what 50,000 long replies can have
_EARLIER = 600.0  # our choice, in seconds: so far two clocks may be apart
_LOOKS_WITHOUT_FILES = 20  # our choice: a batch is told to be complete before its files are there
# Our choice: 2026-10-21 takes no temperature and no top_p of any model.
_ANTHROPIC = {"anthropic-version": "2023-06-01"}
_MAX_TOKENS = 4096  # our choice: where nobody said how long a reply of Anthropic's may be
_UNCHANGED = 30.0  # our choice, in seconds: then a file that somebody else writes is whole
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
_OWN = os.O_NOFOLLOW | os.O_CLOEXEC  # through no link: the folder may come from a stranger
_BY_FORM = ("output_config", "output_format")


class _HttpBatches:
    """What the forms over HTTP share: requests, and what an answer means."""

    at_batch_price = True

    def __init__(
        self, endpoint: "Endpoint", headers: Mapping[str, str], key_header: str | None = None
    ) -> None:
        self._endpoint = endpoint
        self._service = endpoint.service(headers, key_header=key_header)

    async def close(self) -> None:
        await self._service.close()

    async def _get(self, path: str, most: int = 1 << 24) -> bytes:
        """Read something; asking again does no harm."""
        answer = await self._service.send("GET", path, most=most)
        if isinstance(answer, NoAnswer):
            raise NotNow(f"{self._service.url}{path}: {answer.what}")
        status, headers, body = answer
        if status == 200:
            return body
        what = self._what(path, status, body)
        if _may_pass(status) or status == 404:  # what was just made may not be found yet
            raise NotNow(what, retry_after(headers))
        raise UserError(what)

    async def _post(
        self, path: str, data: bytes, content_type: str = "application/json", *, harmless: bool
    ) -> Any:
        """Send something. Of what is not `harmless` to send twice it is said when nobody knows
        whether it was taken."""
        answer = await self._service.send("POST", path, data, content_type=content_type)
        if isinstance(answer, NoAnswer):
            what = f"{self._service.url}{path}: {answer.what}"
            raise NotNow(what) if harmless else NotSure(what)
        status, headers, body = answer
        if 200 <= status < 300:
            try:
                return orjson.loads(body)
            except orjson.JSONDecodeError:
                what = f"{self._service.url}{path}: the answer is not JSON"
                raise (NotNow(what) if harmless else NotSure(what)) from None
        what = self._what(path, status, body)
        if _may_pass(status):
            if harmless or status == 429:
                raise NotNow(what, retry_after(headers))
            raise NotSure(what)
        raise UserError(f"{what}. The batch was not taken, and nothing was asked")

    def _what(self, path: str, status: int, body: bytes) -> str:
        words = self._service.redact.beginning(wire.error_text(body), 300)
        return f"{self._service.url}{path} answered HTTP {status}: {words}"

    def _json(self, body: bytes) -> dict[str, Any]:
        try:
            data = orjson.loads(body)
        except orjson.JSONDecodeError:
            data = None
        if not isinstance(data, dict):
            raise NotNow(f"{self._service.url}: the answer is not a JSON object")
        return data

    def _bare(self, data: bytes) -> bytes:
        """Take the key out of the lines of results."""
        if not self._service.redact:
            return data
        lines = []
        for line in data.splitlines():
            try:
                parsed = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            lines.append(orjson.dumps(_without_key(parsed, self._service.redact)))
        return b"\n".join(lines)

    def spoken(self) -> wire.Dialect:
        return self._endpoint.dialect


class OpenAIBatches(_HttpBatches):
    """OpenAI's form, which others speak too: `/files` and `/batches`."""

    form: BatchForm = "openai"
    most_requests = 50_000
    most_bytes = 190_000_000

    def __init__(self, endpoint: "Endpoint") -> None:
        super().__init__(endpoint, {"accept": "application/json"})
        self._without_files: Counter[str] = Counter()

    def route(self, request: ModelRequest) -> str:
        return "/v1" + self._endpoint.route(request)

    def line(self, name: str, request: ModelRequest) -> bytes:
        return _openai_line(name, self.route(request), self._endpoint.body_in_batch(request))

    async def find(self, batch: OpenBatch) -> str | None:
        found: dict[str, str] = {}
        after = ""
        while True:
            page = self._json(await self._get(f"/batches?limit=100{after}"))
            entries = [entry for entry in page.get("data") or () if isinstance(entry, dict)]
            for entry in entries:
                metadata = entry.get("metadata")
                if isinstance(metadata, dict) and metadata.get(_METADATA) == batch.key:
                    found[str(entry.get("id"))] = str(entry.get("status"))
            created = [_numbers(entry).get("created_at", math.inf) for entry in entries]
            last, after = after, f"&after={entries[-1].get('id')}" if entries else ""
            if not page.get("has_more") or after in ("", last):
                break
            if min(created) < batch.created - _EARLIER:
                break
        useful = [id for id, status in found.items() if status not in ("failed", "cancelled")]
        return next(iter([*useful, *found]), None)

    async def submit(self, batch: OpenBatch, lines: Sequence[bytes]) -> str:
        data, content_type = _multipart(f"{batch.stem}.jsonl", b"\n".join(lines) + b"\n")
        uploaded = await self._post("/files", data, content_type, harmless=True)
        created = await self._post(
            "/batches",
            orjson.dumps(
                {
                    "input_file_id": _id(uploaded),
                    "endpoint": batch.route,
                    "completion_window": "24h",
                    "metadata": {_METADATA: batch.key},
                }
            ),
            harmless=False,
        )
        return _id(created)

    async def look(self, id: str, total: int) -> BatchState:
        batch = self._json(await self._get(f"/batches/{id}"))
        counts = _numbers(batch.get("request_counts"))
        status = str(batch.get("status"))
        files = [batch.get(name) for name in ("output_file_id", "error_file_id")]
        state = BatchState(
            id=id,
            status=status,
            total=counts["total"] or total,
            completed=counts["completed"],
            failed=counts["failed"],
            ended=status in ("completed", "expired", "cancelled", "failed"),
            files=tuple(str(name) for name in files if name),
        )
        if status == "failed":
            state.why, state.too_much = _why_failed(batch.get("errors"), self._service.redact)
        elif state.ended and not files[0] and (state.completed or not state.files):
            self._without_files[id] += 1
            state.ended = self._without_files[id] >= _LOOKS_WITHOUT_FILES
        return state

    async def results(self, state: BatchState) -> bytes:
        parts = [await self._get(f"/files/{name}/content", _MOST_RESULTS) for name in state.files]
        return self._bare(b"\n".join(parts))

    def read(
        self, line: Any, request: ModelRequest, dialect: wire.Dialect
    ) -> ModelReply | AskAgain:
        return self._endpoint.read_in_batch(*_openai_answer(line), request, dialect)


class AnthropicBatches(_HttpBatches):
    """Anthropic's message batches."""

    form: BatchForm = "anthropic"
    most_requests = 100_000
    most_bytes = 240_000_000

    def __init__(self, endpoint: "Endpoint") -> None:
        super().__init__(endpoint, {"accept": "application/json", **_ANTHROPIC}, "x-api-key")

    def route(self, request: ModelRequest) -> str:
        del request
        return "/v1/messages"

    def line(self, name: str, request: ModelRequest) -> bytes:
        params = _anthropic_params(request, self._endpoint.name, self._endpoint.dialect)
        params = {**params, **self._endpoint.params}
        params = {field: value for field, value in params.items() if value is not None}
        return orjson.dumps({"custom_id": name, "params": params})

    async def find(self, batch: OpenBatch) -> str | None:
        """Anthropic keeps no word of ours with a batch, but the ids of its requests begin with our
        key. These are shown when a batch has ended, so one of the same size and time is waited
        for."""
        after = ""
        while True:
            page = self._json(await self._get(f"/messages/batches?limit=100{after}"))
            entries = [entry for entry in page.get("data") or () if isinstance(entry, dict)]
            for entry in entries:
                if await self._is_it(entry, batch):
                    return str(entry.get("id"))
            oldest = min((_moment(entry.get("created_at")) for entry in entries), default=0.0)
            last, after = after, f"&after_id={entries[-1].get('id')}" if entries else ""
            if not page.get("has_more") or after == last or oldest < batch.created - _EARLIER:
                return None

    async def _is_it(self, entry: Mapping[str, Any], batch: OpenBatch) -> bool:
        id, counts = str(entry.get("id")), _numbers(entry.get("request_counts"))
        early = _moment(entry.get("created_at")) < batch.created - _EARLIER
        if early or id in batch.known() or sum(counts.values()) != batch.requests:
            return False
        if entry.get("processing_status") != "ended":
            raise NotNow(f"batch {id} may be ours, which is known when it has ended")
        data = await self._get(f"/messages/batches/{id}/results", _MOST_RESULTS)
        return f'"{batch.key}_'.encode() in data

    async def submit(self, batch: OpenBatch, lines: Sequence[bytes]) -> str:
        del batch  # its key is in the ids of the requests
        data = b'{"requests":[' + b",".join(lines) + b"]}"
        return _id(await self._post("/messages/batches", data, harmless=False))

    async def look(self, id: str, total: int) -> BatchState:
        batch = self._json(await self._get(f"/messages/batches/{id}"))
        counts = _numbers(batch.get("request_counts"))
        status = str(batch.get("processing_status"))
        return BatchState(
            id=id,
            status=status,
            total=sum(counts.values()) or total,
            completed=counts["succeeded"],
            failed=counts["errored"] + counts["canceled"] + counts["expired"],
            ended=status == "ended",
        )

    async def results(self, state: BatchState) -> bytes:
        path = f"/messages/batches/{state.id}/results"
        return self._bare(await self._get(path, _MOST_RESULTS))

    def read(
        self, line: Any, request: ModelRequest, dialect: wire.Dialect
    ) -> ModelReply | AskAgain:
        result = line.get("result")
        result = result if isinstance(result, dict) else {}
        kind = result.get("type")
        if kind == "succeeded":
            status, body = 200, _as_chat(result.get("message"))
        elif kind == "errored":
            status, body = _anthropic_error(result.get("error"), request)
        else:
            return AskAgain(f"the batch ended before it was asked ({kind})")
        reply = self._endpoint.read_in_batch(status, orjson.dumps(body), request, dialect)
        if isinstance(reply, ModelReply) and request.seed is not None:
            reply.adapted = f"{reply.adapted} seed".strip()
        return reply


_ANTHROPIC_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class VllmBatches:
    """The files of `vllm run-batch`: it reads requests from one and writes replies to another.

    Where the command `vllm` is there, it is started here. Otherwise the file waits for somebody
    who runs it elsewhere.
    """

    form: BatchForm = "vllm"
    at_batch_price = False
    most_requests = 1_000_000
    most_bytes = 1 << 31

    def __init__(
        self, model: str, folder: BatchFolder, params: Mapping[str, Any] | None = None
    ) -> None:
        if "://" in folder.root:
            raise UserError("vLLM's batches are files on this machine: give --out a local folder")
        self._model = model
        self._params = params or {}
        self._folder = Path(folder.root).absolute() / "batches"
        self._running: dict[str, asyncio.subprocess.Process] = {}
        self._held: dict[str, int] = {}

    def route(self, request: ModelRequest) -> str:
        return "/v1/chat/completions" if request.prompt is None else "/v1/completions"

    def line(self, name: str, request: ModelRequest) -> bytes:
        body = wire.encode(request, self._model, self.spoken(), self._params)
        return _openai_line(name, self.route(request), body)

    def spoken(self) -> wire.Dialect:
        return wire.Dialect()

    async def find(self, batch: OpenBatch) -> str | None:
        there = self._output(batch.stem).exists() or self._output(batch.stem, ".part").exists()
        return f"{OWN_BATCH}{batch.stem}" if there or self._is_running(batch.stem) else None

    async def submit(self, batch: OpenBatch, lines: Sequence[bytes]) -> str:
        del lines
        command = shutil.which("vllm")
        if command is not None:
            await self._start(command, batch.stem)
        return f"{OWN_BATCH}{batch.stem}"

    async def _start(self, command: str, stem: str) -> None:
        """Start vLLM. It holds a lock while it lives, so that a later process sees it at work."""
        lock = os.open(self._folder / f"{stem}.lock", _OWN | os.O_RDWR | os.O_CREAT, 0o600)
        log = os.open(
            self._folder / f"{stem}.log", _OWN | os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
        )
        try:
            _flock(lock)
            self._running[stem] = await asyncio.create_subprocess_exec(
                *self._command(command, stem, self._output(stem, ".part")),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(lock,),
                start_new_session=True,
            )
        except OSError as error:
            raise UserError(f"{command} cannot be started: {error.strerror or error}") from None
        finally:
            os.close(log)
            os.close(lock)

    def _command(self, command: str, stem: str, output: Path) -> list[str]:
        requests = self._folder / f"{stem}.jsonl"
        words = [command, "run-batch", "-i", str(requests), "-o", str(output)]
        return [*words, "--model", self._model, *environment.vllm_arguments()]

    async def look(self, id: str, total: int) -> BatchState:
        stem = id.removeprefix(OWN_BATCH)
        state = BatchState(id=id, status="running", total=total)
        process = self._running.get(stem)
        if process is not None and process.returncode is None:
            return state
        if process is not None and process.returncode:
            log = self._folder / f"{stem}.log"
            raise UserError(f"vllm run-batch ended with code {process.returncode}; see {log}")
        if process is None and self._is_running(stem):
            return state
        for output in (self._output(stem, ".part"), self._output(stem)):
            if output.exists() and self._is_whole(output, total):
                state.completed = min(_lines_in(output), total)
                state.status, state.ended, state.files = "completed", True, (str(output),)
                return state
        words = " ".join(self._command("vllm", stem, self._output(stem)))
        state.status, state.note = "waits for its file", f"to be run: {words}"
        return state

    async def results(self, state: BatchState) -> bytes:
        return await asyncio.to_thread(_joined, state.files)

    def read(
        self, line: Any, request: ModelRequest, dialect: wire.Dialect
    ) -> ModelReply | AskAgain:
        del dialect
        status, body = _openai_answer(line)
        message = wire.error_text(body)[:300]
        if status in RETRY_STATUSES:
            return AskAgain(f"HTTP {status}: {message}")
        if status != 200:
            raise ModelRefused(f"vLLM answered HTTP {status} in a batch: {message}")
        try:
            samples, usage, served_by = wire.decode(body, request)
        except (wire.BadBody, wire.ErrorBody) as error:
            return AskAgain(str(error))
        return ModelReply(samples=samples, usage=usage, served_by=served_by)

    async def close(self) -> None:
        """Stop what was started here, so that no machine keeps working after the run."""
        for process in self._running.values():
            if process.returncode is None:
                process.terminate()
                await process.wait()

    def _output(self, stem: str, end: str = "") -> Path:
        return self._folder / f"{stem}.output.jsonl{end}"

    def _is_running(self, stem: str) -> bool:
        try:
            lock = os.open(self._folder / f"{stem}.lock", _OWN | os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            _flock(lock)
        except BlockingIOError:
            return True
        else:
            return False
        finally:
            os.close(lock)

    def _is_whole(self, output: Path, total: int) -> bool:
        """Whether all replies are there, or nobody has written more for a while."""
        if output.name.endswith(".part"):  # vLLM wrote it, and has ended
            return True
        return _lines_in(output) >= total or (
            datetime.now().timestamp() - output.stat().st_mtime > _UNCHANGED
        )


def _may_pass(status: int) -> bool:
    """Say whether an error may pass, those of a proxy between here and the provider too."""
    return status in RETRY_STATUSES or 520 <= status < 600


def _flock(descriptor: int) -> None:
    import fcntl  # noqa: PLC0415 - not on Windows, where no run folder is kept

    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _joined(files: Sequence[str]) -> bytes:
    return b"\n".join(Path(name).read_bytes() for name in files)


def _lines_in(path: Path) -> int:
    return sum(1 for line in path.read_bytes().splitlines() if line.strip())


def _openai_line(name: str, route: str, body: bytes) -> bytes:
    line = {"custom_id": name, "method": "POST", "url": route}
    return orjson.dumps({**line, "body": orjson.Fragment(body)})


def _openai_answer(line: Any) -> tuple[int, bytes]:
    """Read status and body from a line of results; of a line without a response, the status of
    what may pass."""
    response, error = line.get("response"), line.get("error")
    if not isinstance(response, dict):
        code = error.get("code") if isinstance(error, dict) else None
        words = f"{code}: {error.get('message') or ''}" if code else f"no response: {error}"
        return 503, orjson.dumps({"error": {"message": words[:300]}})
    body = response.get("body", response if "choices" in response else None)
    status = response.get("status_code", 200)
    if body is None:
        body, status = error, 502 if status == 200 else status
    return status if isinstance(status, int) else 502, orjson.dumps(body)


def _why_failed(errors: Any, redact: Redactor) -> tuple[str, bool]:
    """Say why a batch was refused whole, and whether too much was waiting at the provider."""
    data = errors.get("data") if isinstance(errors, dict) else None
    found = [entry for entry in data or () if isinstance(entry, dict)]
    words = "; ".join(f"{entry.get('code')}: {entry.get('message')}" for entry in found[:3])
    too_much = any(entry.get("code") == "token_limit_exceeded" for entry in found)
    return redact.beginning(words or "no reason was given", 500), too_much


def _multipart(filename: str, data: bytes) -> tuple[bytes, str]:
    boundary = "evenhand-" + os.urandom(12).hex()
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{filename}"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    )
    end = f"\r\n--{boundary}--\r\n"
    return head.encode() + data + end.encode(), f"multipart/form-data; boundary={boundary}"


def _id(answer: Any) -> str:
    id = answer.get("id") if isinstance(answer, dict) else None
    if not isinstance(id, str) or not id:
        raise NotSure("the answer names no id")
    return id


def _numbers(counts: Any) -> Counter[str]:
    counts = counts if isinstance(counts, dict) else {}
    return Counter({name: value for name, value in counts.items() if isinstance(value, int)})


def _moment(text: Any) -> float:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0


def _without_key(value: Any, redact: Redactor) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_without_key(entry, redact) for entry in value]
    if isinstance(value, dict):
        return {redact(name): _without_key(entry, redact) for name, entry in value.items()}
    return value


# -- Anthropic's messages ------------------------------------------------------------------------


def _anthropic_params(request: ModelRequest, model: str, dialect: wire.Dialect) -> dict[str, Any]:
    """Write a request as a message of Anthropic's."""
    if request.prompt is not None or request.logprobs is not None or request.n != 1:
        raise ModelRefused(
            "Anthropic's batches have no raw prompts, no log-probabilities and one reply a request"
        )
    messages = orjson.loads(orjson.dumps(wire.messages_of(request, dialect)))
    system = "\n\n".join(said["content"] for said in messages if said["role"] == "system")
    params: dict[str, Any] = {
        "model": model,
        "max_tokens": request.max_tokens or _MAX_TOKENS,
        "messages": _anthropic_turns(said for said in messages if said["role"] != "system"),
    }
    if request.tools:
        params["tools"] = [_anthropic_tool(tool.function) for tool in request.tools]
    if system:
        params["system"] = system
    for field, sent_as, value in (
        ("temperature", "temperature", request.temperature),
        ("top_p", "top_p", request.top_p),
        ("stop", "stop_sequences", request.stop or None),
    ):
        if value is not None and field not in dialect.dropped:
            params[sent_as] = value
    if request.schema is not None and dialect.form in (
        wire.JsonForm.SCHEMA,
        wire.JsonForm.UNBOUNDED,
    ):
        # Its schemas know no lengths and no ranges.
        schema = {"type": "json_schema", "schema": request.schema.unbounded}
        params["output_config"] = {"format": schema}
    return params


def _anthropic_tool(function: Mapping[str, Any]) -> dict[str, Any]:
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    about = {name: function[name] for name in ("name", "description") if name in function}
    return {**about, "input_schema": schema}


def _anthropic_turns(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Write turns with their tool calls as blocks. Results of one round are one turn of the user's,
    and what the user says next belongs to it."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        role, content = message["role"], message["content"]
        blocks: Any = content
        if role == "tool":
            role, blocks = "user", [{"type": "tool_result", "content": content,
                                     "tool_use_id": message["tool_call_id"]}]  # fmt: skip
        elif "tool_calls" in message:
            blocks = [{"type": "text", "text": content}] if content else []
            blocks += map(_anthropic_call, message["tool_calls"])
        before = turns[-1] if turns else None
        if before and role == "user" == before["role"] and isinstance(before["content"], list):
            said = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
            before["content"] += said
        else:
            turns.append({"role": role, "content": blocks})
    return turns


def _anthropic_call(call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = wire.arguments_of(call, "Anthropic")
    name = call["function"]["name"]
    return {"type": "tool_use", "id": call["id"], "name": name, "input": arguments}


def _as_chat(message: Any) -> dict[str, Any]:
    """Write a message of Anthropic's as the answer of a chat, which is read in one place. What is
    no message becomes an answer without choices, and not one without words."""
    if not isinstance(message, dict) or not isinstance(message.get("content"), list):
        return {}
    blocks = [block for block in message["content"] if isinstance(block, dict)]
    said = {
        kind: "".join(str(block.get(kind) or "") for block in blocks if block.get("type") == kind)
        for kind in ("text", "thinking")
    }
    calls = [
        {"id": block.get("id"), "function": {"name": block.get("name"),
                                             "arguments": block.get("input")}}
        for block in blocks if block.get("type") == "tool_use"
    ]  # fmt: skip
    stop = str(message.get("stop_reason") or "")
    return {
        "model": message.get("model"),
        "choices": [
            {
                "message": {
                    "content": said["text"],
                    "reasoning_content": said["thinking"],
                    "tool_calls": calls,
                },
                "finish_reason": _FINISH.get(stop, stop),
            }
        ],
        "usage": _as_usage(message.get("usage")),
    }


def _as_usage(usage: Any) -> dict[str, Any] | None:
    counts = _numbers(usage)
    if "input_tokens" not in counts or "output_tokens" not in counts:
        return None
    cached = counts["cache_creation_input_tokens"] + counts["cache_read_input_tokens"]
    thinking = dict(_numbers(usage.get("output_tokens_details"))).get("thinking_tokens")
    return {
        "prompt_tokens": counts["input_tokens"] + cached,
        "completion_tokens": counts["output_tokens"],
        "completion_tokens_details": {"reasoning_tokens": thinking},
    }


def _anthropic_error(error: Any, request: ModelRequest) -> tuple[int, dict[str, Any]]:
    inner = error.get("error") if isinstance(error, dict) else None
    inner = inner if isinstance(inner, dict) else {}
    message = str(inner.get("message") or error)
    if request.schema is not None and any(word in message for word in _BY_FORM):
        message = f"response_format: {message}"  # as it is called on the direct wire
    status = _ANTHROPIC_STATUS.get(str(inner.get("type")), 500)
    return status, {"error": {"message": message}}
