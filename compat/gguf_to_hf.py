#!/usr/bin/env python3
"""Turn one GGUF file into a Hugging Face folder (fp32 safetensors, tokenizer, chat template).

    python gguf_to_hf.py --gguf model.gguf --out model-hf

Needs torch, transformers and gguf. Reads local files only.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")


def convert(gguf: Path, out: Path) -> None:
    import torch
    from gguf import GGUFReader
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, name = str(gguf.parent), gguf.name
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)

    # The weights are dequantised by now, yet the model still calls itself quantised
    # and save_pretrained refuses it.
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.hf_quantizer = None  # type: ignore[assignment]

    if not tokenizer.chat_template:
        field = GGUFReader(gguf).get_field("tokenizer.chat_template")
        if field is not None:
            tokenizer.chat_template = field.contents()

    # Padding with the end-of-turn token would hide real ends from a trainer. Prefer a
    # token that the embedding already holds; grow the vocabulary only if there is none.
    if tokenizer.pad_token is None or tokenizer.pad_token == tokenizer.eos_token:
        vocab = tokenizer.get_vocab()
        spare = [
            t
            for t in ("<pad>", "<|pad|>", "<|endoftext|>")
            if t in vocab and t != tokenizer.eos_token
        ]
        tokenizer.pad_token = spare[0] if spare else "<|pad|>"
        if not spare:
            tokenizer.add_special_tokens({"pad_token": "<|pad|>"})
            model.resize_token_embeddings(len(tokenizer))
    for config in (model.config, model.generation_config):
        config.pad_token_id = tokenizer.pad_token_id
        config.eos_token_id = tokenizer.eos_token_id

    out.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(out, safe_serialization=True)
    tokenizer.save_pretrained(out)
    for file in out.iterdir():  # safetensors writes mode 0600
        file.chmod(0o644)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gguf", type=Path, required=True, help="the GGUF file")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    args = parser.parse_args()
    if not args.gguf.is_file():
        parser.error(f"no such file: {args.gguf}")
    convert(args.gguf.resolve(), args.out)
    print(args.out)


if __name__ == "__main__":
    main()
