"""A server that speaks both forms of batches, and misbehaves as it is told.

It answers by the script of `tests/runs/crash/worker.py`: the same words get the same
reply, directly or in a batch. Each reply leaves a line in a log, as a provider would bill it.
"""

import asyncio
import json
import os
import random
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from evenhand.core.errors import ModelError
from tests.runs.crash.worker import script

KEY = "sk-test-0123456789"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_VERSIONS = ("2023-06-01", "2026-10-21")  # ours, and that of the newest client
_SCHEMAS = {"answer": "choice", "support": "support", "harm": "harm", "fluency": "quality"}


@dataclass(frozen=True, kw_only=True)
class Faults:
    """What the server does badly. A number of batches is that of the first ones of a run."""

    late: float = 0.03  # seconds until a batch has ended
    lines_failed: float = 0.0  # the share of lines that fail in a batch, the first time
    fail_status: int = 500
    expired: int = 0  # so many batches end before all is done
    done: float = 0.5  # the share that is done by then
    canceled: int = 0
    missing: float = 0.0  # the share of lines that are left out, the first time
    twice: bool = False  # every result comes twice, and lines that are none of ours
    shuffled: bool = False
    http_500: float = 0.0  # the share of requests that fail before they are read
    cut_creations: int = 0  # so many creations are done, and the answer is cut
    hidden: float = 0.0  # seconds until a batch is in the list
    most_waiting: int = 0  # a batch of more requests is refused: too much is waiting
    refuses_all: str = ""  # why each batch is refused whole
    no_files_for: int = 0  # so many looks at a batch that is done show no files
    refuses_schema: bool = False  # JSON schemas get HTTP 400
    refuses: str = ""  # a field that gets HTTP 400
    no_batches: bool = False  # the routes are not there


@dataclass(slots=True)
class Batch:
    id: str
    made: float
    metadata: dict[str, str]
    lines: list[dict[str, Any]]
    endpoint: str = ""
    results: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    status: str = "in_progress"
    failure: dict[str, Any] | None = None
    counts: Counter[str] = field(default_factory=Counter)
    looks: int = 0


class Provider:
    def __init__(self, log: str, faults: Faults | None = None) -> None:
        self.faults = faults or Faults()
        self.batches: dict[str, Batch] = {}
        self.files: dict[str, bytes] = {}
        self.asked_before: set[str] = set()  # names, by which a fault strikes once
        self.requests = 0
        self.bodies: list[Any] = []
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._rng = random.Random(1)

    # -- the server ------------------------------------------------------------------------------

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._fault], client_max_size=1 << 30)
        app.router.add_post("/v1/chat/completions", self.direct)
        app.router.add_get("/v1/models", self.models)
        if not self.faults.no_batches:
            app.router.add_post("/v1/files", self.upload)
            app.router.add_get("/v1/files/{id}/content", self.content)
            app.router.add_post("/v1/batches", self.create)
            app.router.add_get("/v1/batches", self.listed)
            app.router.add_get("/v1/batches/{id}", self.retrieve)
            app.router.add_post("/v1/messages/batches", self.create_messages)
            app.router.add_get("/v1/messages/batches", self.list_messages)
            app.router.add_get("/v1/messages/batches/{id}", self.retrieve_messages)
            app.router.add_get("/v1/messages/batches/{id}/results", self.results_messages)
        return app

    @web.middleware
    async def _fault(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        self.requests += 1
        if self._rng.random() < self.faults.http_500 and "completions" not in request.path:
            return web.json_response({"error": {"message": "try later"}}, status=500)
        theirs = "/messages/" in request.path
        # Anthropic takes the key in either header; two at once would be two ways to say who asks.
        names = ("x-api-key", "authorization") if theirs else ("authorization",)
        keys = [request.headers[name] for name in names if name in request.headers]
        if keys not in ([KEY], [f"Bearer {KEY}"]):
            return web.json_response({"error": {"message": "no such key"}}, status=401)
        if theirs and request.headers.get("anthropic-version") not in _VERSIONS:
            return web.json_response({"error": {"message": "version"}}, status=400)
        return await handler(request)

    async def models(self, request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "logged"}]})

    async def direct(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.bodies.append(body)
        status, reply = self.reply(body)
        return web.json_response(reply, status=status)

    # -- what it says ----------------------------------------------------------------------------

    def reply(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        form = body.get("response_format", {})
        if self.faults.refuses_schema and form.get("type") == "json_schema":
            return 400, {"error": {"message": "response_format json_schema is not supported"}}
        schema = form.get("json_schema", {}).get("name")
        contents = [message["content"] for message in body["messages"]]
        if schema is None and contents[-1].startswith("Reply with one JSON object"):
            schema = _schema_in(contents.pop())
        said = script("\n".join(contents), schema)
        if isinstance(said, ModelError):
            return 403, {"error": {"message": "no", "type": "permission_error"}}
        choice = {"index": 0, "message": {"role": "assistant", "content": said}}
        return 200, {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "logged",
            "choices": [{**choice, "finish_reason": "stop"}],
            "usage": _usage("prompt_tokens", "completion_tokens", contents, said),
        }

    def message(self, params: dict[str, Any]) -> dict[str, Any]:
        assert params["max_tokens"] > 0
        assert not {"seed", "n", "response_format", "stop"} & params.keys()
        if self.faults.refuses in params:
            words = f"`{self.faults.refuses}` is deprecated for this model."
            return _errored("invalid_request_error", words)
        form = params.get("output_config", {}).get("format")
        schema = None
        if form is not None:
            assert form["type"] == "json_schema"
            assert form["schema"]["additionalProperties"] is False
            if self.faults.refuses_schema:
                return _errored("invalid_request_error", "output_config.format: not supported")
            schema = _schema_in(json.dumps(form["schema"]))
        contents = [message["content"] for message in params["messages"]]
        assert all(message["role"] in ("user", "assistant") for message in params["messages"])
        if schema is None and contents[-1].startswith("Reply with one JSON object"):
            schema = _schema_in(contents.pop())
        if "system" in params:
            contents.insert(0, params["system"])
        said = script("\n".join(contents), schema)
        if isinstance(said, ModelError):
            return _errored("permission_error", "no")
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "logged",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "text", "text": said},
            ],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": _usage("input_tokens", "output_tokens", contents, said),
        }
        return {"type": "succeeded", "message": message}

    # -- OpenAI's form ---------------------------------------------------------------------------

    async def upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert form["purpose"] == "batch"
        sent = form["file"]
        assert isinstance(sent, web.FileField)
        data = sent.file.read()
        id = self._file(data)
        return web.json_response(
            {
                "id": id,
                "object": "file",
                "bytes": len(data),
                "created_at": int(time.time()),
                "filename": sent.filename,
                "purpose": "batch",
                "status": "processed",
            }
        )

    async def content(self, request: web.Request) -> web.Response:
        return web.Response(body=self.files[request.match_info["id"]])

    async def create(self, request: web.Request) -> web.Response:
        asked = await request.json()
        assert asked["completion_window"] == "24h"
        lines = [json.loads(line) for line in self.files[asked["input_file_id"]].splitlines()]
        assert all(line["method"] == "POST" and line["url"] == asked["endpoint"] for line in lines)
        batch = self._begin("batch", lines, asked.get("metadata") or {})
        batch.endpoint = asked["endpoint"]
        most, refused = self.faults.most_waiting, self.faults.refuses_all
        if (most and len(lines) > most) or refused:
            code = "token_limit_exceeded" if most else "invalid"
            batch.status = "failed"
            batch.failure = {"data": [{"code": code, "message": refused or "too much"}]}
        return await self._created(request, self._openai(batch))

    async def listed(self, request: web.Request) -> web.Response:
        page, more = self._page(request, "after")
        data = [self._openai(batch) for batch in page]
        return web.json_response({"object": "list", "data": data, "has_more": more})

    async def retrieve(self, request: web.Request) -> web.Response:
        batch = self.batches[request.match_info["id"]]
        self._work(batch)
        batch.looks += batch.status == "completed"
        return web.json_response(self._openai(batch))

    def _openai(self, batch: Batch) -> dict[str, Any]:
        shown = batch.status in ("completed", "expired", "cancelled")
        shown &= batch.looks > self.faults.no_files_for or batch.status != "completed"
        return {
            "id": batch.id,
            "object": "batch",
            "endpoint": batch.endpoint,
            "input_file_id": "file-in",
            "completion_window": "24h",
            "status": batch.status,
            "created_at": int(batch.made),
            "metadata": batch.metadata,
            "errors": batch.failure,
            "request_counts": {
                "total": len(batch.lines),
                "completed": batch.counts["completed"],
                "failed": batch.counts["failed"],
            },
            "output_file_id": self._file_of(batch, batch.results) if shown else None,
            "error_file_id": self._file_of(batch, batch.errors) if shown else None,
        }

    def _file_of(self, batch: Batch, lines: list[str]) -> str | None:
        if not lines:
            return None
        kind = "out" if lines is batch.results else "err"
        self.files[f"file-{batch.id}-{kind}"] = "".join(f"{line}\n" for line in lines).encode()
        return f"file-{batch.id}-{kind}"

    # -- Anthropic's form ------------------------------------------------------------------------

    async def create_messages(self, request: web.Request) -> web.Response:
        asked = await request.json()
        batch = self._begin("msgbatch", asked["requests"], {})
        return await self._created(request, self._anthropic(batch))

    async def list_messages(self, request: web.Request) -> web.Response:
        page, more = self._page(request, "after_id")
        data = [self._anthropic(batch) for batch in page]
        ids = [entry["id"] for entry in data]
        ends = {"first_id": ids[0] if ids else None, "last_id": ids[-1] if ids else None}
        return web.json_response({"data": data, "has_more": more, **ends})

    async def retrieve_messages(self, request: web.Request) -> web.Response:
        batch = self.batches[request.match_info["id"]]
        self._work(batch)
        return web.json_response(self._anthropic(batch))

    async def results_messages(self, request: web.Request) -> web.Response:
        batch = self.batches[request.match_info["id"]]
        if batch.status == "in_progress":
            return web.json_response({"error": {"message": "not ended"}}, status=404)
        lines = [*batch.results, *batch.errors]
        return web.Response(text="".join(f"{line}\n" for line in lines))

    def _anthropic(self, batch: Batch) -> dict[str, Any]:
        over = batch.status != "in_progress"
        counts = {name: 0 for name in ("succeeded", "errored", "canceled", "expired")}
        counts |= {name: batch.counts[name] for name in counts if over}
        # What is missing in the results counts among the others all the same.
        counts["processing"] = 0 if over else len(batch.lines)
        counts["succeeded"] += len(batch.lines) - sum(counts.values())
        made = datetime.fromtimestamp(batch.made, UTC).isoformat()
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if over else "in_progress",
            "request_counts": counts,
            "created_at": made,
            "expires_at": made,
            "ended_at": made if over else None,
            "results_url": f"/v1/messages/batches/{batch.id}/results" if over else None,
        }

    # -- batches ---------------------------------------------------------------------------------

    def _begin(self, kind: str, lines: list[dict[str, Any]], metadata: dict[str, str]) -> Batch:
        names = [line["custom_id"] for line in lines]
        assert len(set(names)) == len(names)
        assert all(_NAME.fullmatch(name) for name in names)
        assert lines
        batch = Batch(f"{kind}_{len(self.batches):04d}", time.time(), metadata, lines)
        self.batches[batch.id] = batch
        return batch

    async def _created(self, request: web.Request, shown: dict[str, Any]) -> web.Response:
        if self.faults.cut_creations >= len(self.batches):
            assert request.transport is not None
            request.transport.abort()
            await asyncio.sleep(0)
        return web.json_response(shown)

    def _page(self, request: web.Request, cursor: str) -> tuple[list[Batch], bool]:
        """Newest first, at most two on a page, so that pages are turned."""
        now = time.time()
        shown = [b for b in reversed(self.batches.values()) if now - b.made >= self.faults.hidden]
        for batch in shown:
            self._work(batch)
        ids = [batch.id for batch in shown]
        start = ids.index(request.query[cursor]) + 1 if cursor in request.query else 0
        return shown[start : start + 2], len(shown) > start + 2

    def _work(self, batch: Batch) -> None:
        """Answer the batch, when its time has come."""
        if batch.status != "in_progress" or time.time() - batch.made < self.faults.late:
            return
        number = list(self.batches).index(batch.id)
        end = "completed"
        if number < self.faults.expired:
            end = "expired"
        elif number < self.faults.canceled:
            end = "cancelled"
        done = len(batch.lines) if end == "completed" else int(len(batch.lines) * self.faults.done)
        for line in batch.lines[:done]:
            self._line(batch, line)
        for line in batch.lines[done:]:
            self._left_out(batch, line, end)
        if self.faults.shuffled:
            self._rng.shuffle(batch.results)
        if self.faults.twice:
            strangers = [json.dumps({"custom_id": "other_1", "response": None}), "{", "[]", ""]
            batch.results = [*batch.results, *strangers, *batch.results]
        batch.status = end

    def _line(self, batch: Batch, line: dict[str, Any]) -> None:
        name = line["custom_id"].partition("_")[2]
        again = name in self.asked_before
        self.asked_before.add(name)
        if not again and self._rng.random() < self.faults.lines_failed:
            self._failed(batch, line)
        elif again or self._rng.random() >= self.faults.missing:
            self._answer(batch, line)

    def _answer(self, batch: Batch, line: dict[str, Any]) -> None:
        name = line["custom_id"]
        if "params" in line:
            result = self.message(line["params"])
            batch.counts[result["type"]] += 1
            answered = result["type"] == "succeeded"
            batch.results.append(json.dumps({"custom_id": name, "result": result}))
        else:
            self.bodies.append(line["body"])
            status, body = self.reply(line["body"])
            answered = status == 200
            batch.counts["completed" if answered else "failed"] += 1
            response = {"status_code": status, "request_id": "r", "body": body}
            row = {"id": "batch_req", "custom_id": name, "response": response, "error": None}
            (batch.results if answered else batch.errors).append(json.dumps(row))
        if answered:
            os.write(self._log, f"{name.partition('_')[2]}\n".encode())

    def _failed(self, batch: Batch, line: dict[str, Any]) -> None:
        status = self.faults.fail_status
        batch.counts["failed"] += 1
        batch.counts["errored"] += 1
        if "params" in line:
            kind = "rate_limit_error" if status == 429 else "api_error"
            row = {"custom_id": line["custom_id"], "result": _errored(kind, "bad luck")}
        else:
            body = {"error": {"message": "bad luck"}}
            response = {"status_code": status, "request_id": "r", "body": body}
            row = {"custom_id": line["custom_id"], "response": response, "error": None}
        batch.errors.append(json.dumps(row))

    def _left_out(self, batch: Batch, line: dict[str, Any], end: str) -> None:
        name = line["custom_id"]
        if "params" in line:
            kind = {"cancelled": "canceled"}.get(end, end)
            batch.counts[kind] += 1
            batch.errors.append(json.dumps({"custom_id": name, "result": {"type": kind}}))
        elif end == "expired":  # of a canceled one, OpenAI lists nothing
            error = {"code": "batch_expired", "message": "not before the window expired"}
            row = {"id": "batch_req", "custom_id": name, "response": None, "error": error}
            batch.errors.append(json.dumps(row))

    def _file(self, data: bytes) -> str:
        id = f"file-{len(self.files)}"
        self.files[id] = data
        return id


def _schema_in(words: str) -> str | None:
    return next((name for sign, name in _SCHEMAS.items() if f'"{sign}"' in words), None)


def _usage(asked: str, replied: str, contents: list[str], said: str) -> dict[str, int]:
    return {asked: sum(len(text.split()) for text in contents), replied: len(said.split())}


def _errored(kind: str, message: str) -> dict[str, Any]:
    error = {"type": "error", "error": {"type": kind, "message": message}}
    return {"type": "errored", "error": error}


async def start(provider: Provider) -> tuple[web.AppRunner, str]:
    """Start it on a free port; its address."""
    runner = web.AppRunner(provider.app(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}/v1"


def serve(log: str, port_file: str, faults: Faults) -> None:
    """Serve in a process of its own, which outlives the processes that are killed."""

    async def forever() -> None:
        _, url = await start(Provider(log, faults))
        Path(f"{port_file}.part").write_text(url)
        Path(f"{port_file}.part").rename(port_file)
        await asyncio.Event().wait()

    asyncio.run(forever())
