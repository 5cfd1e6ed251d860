"""Answers and files that no provider should give, and some do."""

import asyncio
import json
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evenhand.core import Message, Usage
from evenhand.core.errors import CorruptRun, ModelBusy, UserError
from evenhand.models import Endpoint, ModelReply, ModelRequest
from evenhand.models.batch import (
    AskAgain,
    BatchFolder,
    BatchQueue,
    BatchTiming,
    NotNow,
    NotSure,
    OpenBatch,
    VllmFiles,
)
from evenhand.models.batch_apis import AnthropicBatches, OpenAIBatches, VllmBatches
from evenhand.models.wire import USUAL
from evenhand.runs.store.folder import LocalFolder
from tests.errors import raises_naming

HELLO = ModelRequest(messages=(Message("user", "hello"),), sha256="ab", position=3)
BATCH = OpenBatch(
    stem="s", key="k", created=0.0, route="/v1/chat/completions", requests=1, known=frozenset
)
NO_FOLDER = cast(BatchFolder, SimpleNamespace(root="."))


class Answers:
    """A service that gives these answers, the last again and again."""

    url = "http://127.0.0.1:1/v1"

    def __init__(self, *answers: tuple[int, Any]) -> None:
        self.answers = deque(answers)
        self.redact = Endpoint(self.url, model="m").redact

    async def send(self, *_: Any, **__: Any) -> tuple[int, dict[str, str], bytes]:
        await asyncio.sleep(0)
        status, body = self.answers[0] if len(self.answers) == 1 else self.answers.popleft()
        return status, {}, json.dumps(body).encode()

    async def close(self) -> None:
        return None


def openai(*answers: tuple[int, Any]) -> OpenAIBatches:
    api = Endpoint(Answers.url, model="m").batch_api(NO_FOLDER)
    assert isinstance(api, OpenAIBatches)
    api._service = Answers(*answers)  # type: ignore[assignment]
    return api


def anthropic() -> AnthropicBatches:
    api = Endpoint(Answers.url, model="m", batch="anthropic").batch_api(NO_FOLDER)
    assert isinstance(api, AnthropicBatches)
    return api


# -- providers -------------------------------------------------------------------------------------


async def test_a_batch_that_was_accepted_for_later_was_taken() -> None:
    api = openai((202, {"id": "file-1"}), (202, {"id": "batches/b=1"}))
    assert await api.submit(BATCH, [b"{}"]) == "batches/b=1"


@pytest.mark.parametrize("status", [520, 524, 598])
async def test_an_error_of_a_proxy_leaves_it_open_whether_a_batch_was_taken(status: int) -> None:
    with raises_naming(NotSure, f"HTTP {status}"):
        await openai((200, {"id": "file-1"}), (status, "<html>")).submit(BATCH, [b"{}"])
    with raises_naming(NotNow, f"HTTP {status}"):
        await openai((status, "<html>")).look("b", 1)


async def test_a_refused_batch_was_not_taken() -> None:
    with raises_naming(UserError, "was not taken"):
        await openai((200, {"id": "file-1"}), (403, {"error": "no"})).submit(BATCH, [b"{}"])


@pytest.mark.parametrize("status", ["completed", "expired", "cancelled"])
async def test_answers_that_are_counted_are_waited_for_until_their_file_is_named(
    status: str,
) -> None:
    shown = {"status": status, "request_counts": {"total": 2, "completed": 1, "failed": 1}}
    api = openai(
        (200, {**shown, "error_file_id": "e"}),
        (200, {**shown, "error_file_id": "e", "output_file_id": "o"}),
    )
    assert not (await api.look("b", 2)).ended
    state = await api.look("b", 2)
    assert (state.ended, state.files) == (True, ("o", "e"))


async def test_a_batch_in_which_nothing_was_answered_has_ended_without_a_file_of_answers() -> None:
    shown = {"status": "completed", "request_counts": {"total": 2, "completed": 0, "failed": 2}}
    assert (await openai((200, {**shown, "error_file_id": "e"})).look("b", 2)).ended


@pytest.mark.parametrize(
    "result",
    [["succeeded"], "succeeded", 1, {"type": "succeeded", "message": {"content": 1}},
     {"type": "succeeded", "message": {}},
     {"type": "succeeded", "message": "hi"}, {"type": "errored", "error": 5}],
)  # fmt: skip
def test_a_result_of_another_shape_is_asked_again_and_no_empty_answer(result: Any) -> None:
    assert isinstance(anthropic().read({"result": result}, HELLO, USUAL), AskAgain)


def test_a_reply_that_the_context_window_cut_off_is_cut_off() -> None:
    message = {
        "content": [{"type": "text", "text": "Half a"}],
        "stop_reason": "model_context_window_exceeded",
    }
    line = {"result": {"type": "succeeded", "message": message}}
    reply = anthropic().read(line, HELLO, USUAL)
    assert isinstance(reply, ModelReply)
    assert reply.samples[0].finish == "length"


@pytest.mark.parametrize("created", [None, "2026-11-19T10:00:00Z", 5.5])
async def test_a_list_with_odd_times_and_tags_is_searched_to_its_end(created: Any) -> None:
    others = [{"id": f"o{n}", "created_at": created, "metadata": ["k"]} for n in range(2)]
    ours = {"id": "ours", "created_at": created, "metadata": {"evenhand": "k"}, "status": "done"}
    api = openai((200, {"data": others, "has_more": True}), (200, {"data": [ours]}))
    assert await api.find(BATCH) == "ours"


@pytest.mark.parametrize("form", ["openai", "anthropic"])
async def test_a_list_that_gives_one_page_again_and_again_is_searched_once(form: str) -> None:
    page = {"data": [{"id": "o", "created_at": "2026-11-19T10:00:00Z"}], "has_more": True}
    api = openai() if form == "openai" else anthropic()
    api._service = Answers((200, page))  # type: ignore[assignment]
    async with asyncio.timeout(5):
        assert await api.find(BATCH) is None


# -- the queue -------------------------------------------------------------------------------------


class Model:
    """A model whose batches end as the test says."""

    name = "m"

    def __init__(self, *ends: Any) -> None:
        self.api = openai((200, {}))
        self.sent: list[list[str]] = []
        ends_ = deque(ends)

        async def submit(batch: OpenBatch, lines: Any) -> str:
            self.sent.append([json.loads(line)["custom_id"] for line in lines])
            return f"b{len(self.sent)}"

        async def look(id: str, total: int) -> Any:
            return SimpleNamespace(
                id=id, status="completed", total=total, ended=True, why="", too_much=False
            )

        async def results(_: Any) -> bytes:
            rows = [{"custom_id": name, "response": {}} for name in self.sent[-1]]
            return b"\n".join(json.dumps(row).encode() for row in rows)

        def read(*_: Any) -> Any:
            return ends_[0] if len(ends_) == 1 else ends_.popleft()

        for function in (submit, look, results, read):
            setattr(self.api, function.__name__, function)

    def describe(self) -> dict[str, Any]:
        return {"model": "m"}

    def batch_api(self, _: Any) -> OpenAIBatches:
        return self.api


def queue_in(folder: Path) -> BatchQueue:
    return BatchQueue(
        LocalFolder(folder),
        items_at_work=lambda: 1,
        is_left=lambda _: True,
        timing=BatchTiming(settle=0.05, first_look=0.01, longest_look=0.02, listed=0.01),
    )


def replied(text: str = "hi") -> ModelReply:
    return cast(ModelReply, openai().read(
        {"response": {"body": {"choices": [{"message": {"content": text}}]}}}, HELLO, USUAL
    ))  # fmt: skip


async def test_who_leaves_and_comes_back_is_in_the_batch_once(tmp_path: Path) -> None:
    model, queue = Model(replied()), queue_in(tmp_path)
    through = queue.through(cast(Any, model))
    async with queue:
        left = asyncio.ensure_future(through.complete(HELLO))
        await asyncio.sleep(0)
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)
        await through.complete(HELLO)
    assert [len(names) for names in model.sent] == [1]


async def test_what_was_spent_before_the_last_batch_is_in_the_error(tmp_path: Path) -> None:
    spent = AskAgain("no object", in_another_form=True, spent=Usage(40, 7))
    model, queue = Model(spent, AskAgain("busy")), queue_in(tmp_path)
    through = queue.through(cast(Any, model))
    async with queue:
        with pytest.raises(ModelBusy) as busy:
            await through.complete(HELLO)
    assert (len(model.sent), busy.value.attempts, busy.value.tokens) == (4, 3, (40, 7))


async def test_answers_that_cannot_be_read_are_not_free(tmp_path: Path) -> None:
    unreadable = Endpoint(Answers.url, model="m").read_in_batch(200, b"{}", HELLO, USUAL)
    model, queue = Model(unreadable), queue_in(tmp_path)
    through = queue.through(cast(Any, model))
    async with queue:
        with pytest.raises(ModelBusy) as busy:
            await through.complete(HELLO)
    assert (len(model.sent), busy.value.attempts, busy.value.tokens) == (3, 3, None)


STEM = "batches/000000-1700000000-{}-0123456789ab"


@pytest.mark.parametrize(
    ("end", "data"),
    [
        (".sent.json", b"{"),
        (".sent.json", b"[]"),
        (".sent.json", b'{"id": 5}'),
        (".sent.json", b'{"id": "../../files"}'),
        (".results.jsonl", b""),
        (".results.jsonl", b'{"status": "completed"}'),
        (".jsonl", b"{\n"),
        (".jsonl", b"[]\n"),
        (".jsonl", b"{}\n"),
    ],
)
async def test_a_damaged_file_of_a_batch_is_a_corrupt_run(
    end: str, data: bytes, tmp_path: Path
) -> None:
    folder, model, queue = LocalFolder(tmp_path), Model(replied()), queue_in(tmp_path)
    queue.through(cast(Any, model))
    stem = STEM.format(next(iter(queue._players)))
    for name, whole in {".jsonl": b'{"custom_id": "0123456789ab_3-cd"}\n', end: data}.items():
        folder.create(f"{stem}{name}", whole)
    with raises_naming(CorruptRun, "000000-1700000000"):
        async with queue:
            pass


async def test_a_batch_with_a_long_name_with_slashes_is_taken_up_again(tmp_path: Path) -> None:
    folder, model, queue = LocalFolder(tmp_path), Model(replied()), queue_in(tmp_path)
    queue.through(cast(Any, model))
    stem, id = STEM.format(next(iter(queue._players))), f"batches/{'x' * 300}=="
    folder.create(f"{stem}.jsonl", b'{"custom_id": "0123456789ab_3-cd"}\n')
    folder.create(f"{stem}.sent.json", json.dumps({"id": id}).encode())
    async with queue:
        await asyncio.sleep(0)
        assert [state.id for state in queue.states()[1]] == [id]


# -- vLLM ------------------------------------------------------------------------------------------


async def test_a_command_that_cannot_be_started_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / "vllm"
    command.write_text("#!/no/such/python\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "batches").mkdir()
    api = VllmBatches("m", cast(BatchFolder, SimpleNamespace(root=str(tmp_path))))
    with raises_naming(UserError, str(command)):
        await api.submit(BATCH, [])


def test_the_params_of_a_model_of_files_are_in_its_requests(tmp_path: Path) -> None:
    model = VllmFiles("m", {"top_k": 5, "extra_body": {"a": 1}})
    api = model.batch_api(cast(BatchFolder, SimpleNamespace(root=str(tmp_path))))
    body = json.loads(api.line("k_0", HELLO))["body"]
    assert (body["top_k"], body["a"]) == (5, 1)
    assert model.describe()["params"] == {"top_k": 5, "a": 1}
    with raises_naming(UserError, "messages"):
        VllmFiles("m", {"messages": []})
