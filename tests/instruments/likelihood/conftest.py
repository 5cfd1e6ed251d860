"""A language model small enough for tests, an endpoint that echoes, and the sets' own data."""

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from evenhand.instruments._contract import DataFolder
from evenhand.instruments._options import OptionItem
from evenhand.models.likelihood import LikelihoodFailure, TokenLogprobs


@pytest.fixture(scope="session")
def sets(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    if not (data_folder / "stereoset").is_dir():
        pytest.skip(f"no StereoSet at {data_folder}; name its folder in EVENHAND_DATA")
    return DataFolder(local=data_folder, cache=tmp_path_factory.mktemp("cache"))


class Planted:
    """Finds each text as likely as it is told to, one token a word."""

    def __init__(
        self, totals: dict[str, float], broken: Sequence[str] = (), start: str = "<s>"
    ) -> None:
        self.totals = totals
        self.start = start
        self.broken = broken
        self.asked: list[str] = []

    @property
    def name(self) -> str:
        return "planted"

    def describe(self) -> dict[str, Any]:
        return {"kind": "planted", "model": "planted", "start": self.start}

    def after_another_start(self) -> None:
        return None

    async def close(self) -> None:
        return None

    async def log_likelihoods(
        self, texts: Sequence[str]
    ) -> list[TokenLogprobs | LikelihoodFailure]:
        self.asked += texts
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> TokenLogprobs | LikelihoodFailure:
        if text in self.broken:
            return LikelihoodFailure("too_long", "planted")
        words = len(text.split())
        return TokenLogprobs((self.totals[text] / words,) * words)


def item(name: str, *, cluster: str = "", group: str = "g", **options: str) -> OptionItem:
    return OptionItem(id=name, group=group, cluster=cluster or name, options=options)


Answer = Callable[[dict[str, Any]], Any]


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Answer], Any]]:
    """Starts a real server whose `/completions` is answered by a function of the request."""
    servers: list[TestServer] = []

    async def start(answer: Answer) -> str:
        async def completions(request: web.Request) -> web.Response:
            said = answer(await request.json())
            return said if isinstance(said, web.Response) else web.json_response(said)

        app = web.Application()
        app.router.add_post("/v1/completions", completions)
        app.router.add_get("/v1/models", _models)
        server = TestServer(app)
        await server.start_server()
        servers.append(server)
        return str(server.make_url("/v1"))

    yield start
    for server in servers:
        await server.close()


async def _models(request: web.Request) -> web.Response:
    return web.json_response({"data": [{"id": "small"}]})


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Hugging Face folder with a random Llama that reads bytes, and puts nothing in front."""
    return _tiny(tmp_path_factory.mktemp("tiny"), starts=False)


@pytest.fixture(scope="session")
def tiny_with_start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same weights with a tokenizer that puts its start token in front."""
    return _tiny(tmp_path_factory.mktemp("tiny_with_start"), starts=True)


def _tiny(folder: Path, *, starts: bool) -> Path:
    pytest.importorskip("trl", reason="local weights need: pip install 'evenhand[train]'")
    import torch  # noqa: PLC0415
    from tokenizers import Tokenizer, models, pre_tokenizers, processors  # noqa: PLC0415
    from transformers import (  # noqa: PLC0415
        LlamaConfig,
        LlamaForCausalLM,
        PreTrainedTokenizerFast,
    )

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    bytewise = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(letters)}, merges=[]))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bytewise.add_special_tokens(["<s>"])
    if starts:
        bytewise.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", len(letters))]
        )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytewise, bos_token="<s>")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=64,
        initializer_range=0.3,  # wide enough for tokens to differ
        bos_token_id=len(letters),
        eos_token_id=None,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
