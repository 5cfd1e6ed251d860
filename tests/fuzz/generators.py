"""The document each reader expects, spoilt in the ways that documents are spoilt."""

import json
from collections.abc import Mapping

from . import shapes
from .decisions import Decisions
from .documents import json_text, object_text, scalar, value

_PERCENT = ("0", "100", "7", "50", "101", "-1", "1.0", "1e1", "true", '"1"', "-0", "null", "100.0")
_WORDS = ('"fine"', '""', '"\\u00e9 😀"', '"a\\nb"', '"<text>"', '"' + "x" * 20_000 + '"')
_LONG = ('"' + "x" * 20_001 + '"', '"' + "y" * 200_000 + '"')
REPLY_FIELDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Harm": {"reason": _WORDS, "harm": _PERCENT[:3]},
    "Support": {"reason": _WORDS, "support": _PERCENT[:3]},
    "Quality": {
        "reason": _WORDS,
        "fluency": _PERCENT[:3],
        "coherence": _PERCENT[:3],
        "relevance": _PERCENT[:3],
    },
    "Scored": {
        "toxicity": ("0", "1", "0.5", "0.0", "1.0", "1e-3", "-0", "-0.0", "0.1e1"),
        "attributes": ("{}", '{"insult":0.5}', '{"threat":1}', '{"threat":2}', '{"threat":"1"}'),
        "because": ("[]", '["an insult"]', '["a","b"]'),
    },
    "Choice": {"answer": ('"A"', '"B"', '"C"')},
    "ReasonedChoice": {"reasoning": _WORDS, "answer": ('"A"', '"B"', '"C"')},
}
_ODD_VALUES = (*_PERCENT, *_LONG, '"D"', '"a"', '["A"]', "1.0000001", "[1]", "[null]", '[""]')


def reply(decide: Decisions) -> tuple[str, str]:
    """A kind of reply and a text for it."""
    kind = decide.pick(tuple(REPLY_FIELDS))
    return kind, object_text(decide, REPLY_FIELDS[kind], _ODD_VALUES)


def item(decide: Decisions) -> bytes:
    fields = {
        "prompt": ('"Describe a nurse."', '"é"', '"x"'),
        "id": ('"a"', "null", '"' + "i" * 500 + '"'),
        "choices": ("[]", '["x","y"]', '["x","y","z"]', json.dumps(["c"] * 26)),
        "answer": ('""', '"x"', '"y"'),
        "context": ('""', '"c"'),
        "tags": ("{}", '{"k":"v"}'),
    }
    kept = {name: fields[name] for name in fields if name == "prompt" or not decide.one_in(3)}
    odd = (
        '["x"]',
        '"none of them"',
        '{"k":1}',
        json.dumps(["c"] * 27),
        '"' + "i" * 501 + '"',
        '""',
    )
    line = object_text(decide, kept, odd).encode("utf-8", "surrogatepass")
    if decide.one_in(8):
        at = decide.place(len(line))
        line = line[:at] + bytes([decide.pick((0, 0x80, 0xFF, 0xC0, 0x0A))]) + line[at:]
    return line


def _choice(decide: Decisions) -> str:
    parts = '[{"type":"text","text":"hi"},{"type":"x"}]'
    said = decide.pick(('"hi"', '""', "null", '"a\\u0000b"', '"é"', "1", "[]", parts))
    entry = decide.pick(
        (
            '{"token":"a","logprob":-0.5,"bytes":null,"top_logprobs":[{"token":"b","logprob":-1}]}',
            '{"token":"a","logprob":-1.5}',
            '{"token":"a","logprob":-1.5,"top_logprobs":null}',
            '{"token":"a"}',
            "1",
        )
    )
    logprobs = decide.pick(
        (
            "null",
            '{"content":[]}',
            f'{{"content":[{entry},{entry}]}}',
            '{"tokens":["a","b"],"token_logprobs":[null,-1],"top_logprobs":[null,{"b":-1,"c":-2}]}',
            '{"tokens":["a"],"token_logprobs":[-0.1],"top_logprobs":null,"text_offset":[0]}',
            '{"tokens":["a"],"token_logprobs":[]}',
            '{"tokens":["a"]}',
            value(decide),
        )
    )
    fields = {
        "index": ("0",),
        "message": (
            f'{{"role":"assistant","content":{said}}}',
            f'{{"content":{said},"refusal":"no"}}',
            f'{{"refusal":{said}}}',
        ),
        "text": (said,),
        "finish_reason": ('"stop"', '"length"', "null", "1"),
        "logprobs": (logprobs,),
    }
    return (
        object_text(Decisions(decide.rest()[:6]), fields)
        if decide.one_in(4)
        else _plain(decide, fields)
    )


def _plain(decide: Decisions, fields: Mapping[str, tuple[str, ...]]) -> str:
    return "{" + ",".join(f'"{name}":{decide.pick(said)}' for name, said in fields.items()) + "}"


def wire_body(decide: Decisions) -> bytes:
    choices = ",".join(_choice(decide) for _ in range(1 + decide.below(3)))
    fields = {
        "choices": (f"[{choices}]",),
        "usage": (
            '{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}',
            '{"prompt_tokens":9}',
            "null",
            f'{{"prompt_tokens":{scalar(decide)},"completion_tokens":{scalar(decide)}}}',
        ),
        "model": ('"m"', "null", "7"),
        "id": ('"x"', value(decide)),
    }
    return object_text(decide, fields).encode("utf-8", "surrogatepass")


def error_body(decide: Decisions) -> bytes:
    said = decide.pick(('"no"', "null", '""', value(decide), "[" * 900 + "]" * 900))
    for _ in range(decide.below(4)):
        said = f'{{"{decide.pick(("error", "message", "detail", "code"))}":{said}}}'
    if decide.one_in(4):
        said = json_text(decide)
    if decide.one_in(4):
        said = f'{{"object":"list","data":[{{"id":"m"}},{{"id":{said}}}]}}'
    return said.encode("utf-8", "surrogatepass")


def run_record(decide: Decisions) -> bytes:
    thing = (
        f'{{"name":{scalar(decide)}}}' if decide.one_in(4) else '{"name":"x","settings":{"a":1}}'
    )
    fields = {
        "format": ("2",),
        "method": (thing,),
        "prompts": ('{"a@1":"00"}', "{}"),
        "cast": ('{"default":{"kind":"scripted","model":"m"}}',),
        "source": ('{"items":3}',),
        "limits": ('{"seconds":600.0}',),
        "settings": ('{"concurrency":8}', "{}"),
        "seed": ("null", "5", "-1", "0"),
        "created": ('"2026-01-01T00:00:00Z"',),
        "versions": ('{"python":"3.11"}',),
    }
    odd = (
        "1",
        "3",
        "2.0",
        "true",
        '"2"',
        "[[2]]",
        '"5"',
        "5.0",
        '{"python":3.11}',
        "[" * 900 + "]" * 900,
    )
    return object_text(decide, fields, odd).encode("utf-8", "surrogatepass")


def prompt_file(decide: Decisions) -> str:
    names = ("a", "b", "draft", "choices")
    used = [names[at] for at in range(decide.below(4))]
    body = " ".join(
        decide.pick(
            (
                f"{{{{ {name} }}}}",
                f"{{{{ {name} | marked('t') }}}}",
                f"{{% if {name} %}}x{{% endif %}}",
            )
        )
        for name in used
    )
    if decide.one_in(4):
        odd = (
            "{{",
            "{% if",
            "{{ a | nosuch }}",
            "{% endfor %}",
            "{# x",
            "{{ a.b[0] }}",
            "{{ 1 // 0 }}",
        )
        body += decide.pick(odd)
    declared = ", ".join(
        used if not decide.one_in(4) else [*used, decide.pick(("z", "1", "[x]", "*a"))]
    )
    card = ["id: x/y", "version: 1", "source: ours", f"variables: {{open: [{declared}]}}"]
    if decide.one_in(4):
        odd_line = decide.pick(
            (
                "- : [",
                "reply: x",
                "id: [1]",
                "\tx: 1",
                "2020-99-99",
                "&a [*a]",
                "? :",
                "!!python/object:x {}",
            )
        )
        card[decide.below(4)] = odd_line
    split = decide.pick(("---\n", "---\n", "---\n", "----\n", "---\r\n"))
    return f"---\n{chr(10).join(card)}\n{split}{body}\n---\nuser {body}\n"


_PIECES = (
    *("x", "<", "</", ">", "/", " ", "\n", "\u00a0", "\t", "< / ", "<\n/\n", "‹", "<!--", "\u200b"),
    *("&lt;", "&#60;", "&", "amp;", "lt;", "＜", "﹤", "\x00", "＆", "&#x2f;", "\\", "%3c"),
    *("{tag}", "{TAG}", "{tag}>", "</{tag}>", "<{tag}>", "<{TAG} a='b'>", "</{tag}s>", "answer"),
)


def judged_text(decide: Decisions) -> tuple[str, str]:
    """Text that would like to end the fence around it, and the tag of that fence."""
    tag = decide.pick(("text", "answer", "task", "option"))
    pieces = (decide.pick(_PIECES) for _ in range(decide.below(12)))
    return "".join(pieces).replace("{tag}", tag).replace("{TAG}", _swapped(decide, tag)), tag


def _swapped(decide: Decisions, tag: str) -> str:
    return decide.pick(
        (tag.upper(), tag.title(), tag.replace("s", "ſ"), tag.replace("k", "\u212a"))
    )


def ledger_entry(decide: Decisions) -> bytes:
    """An entry whose checksum fits what it holds, right or wrong, or does not fit at all."""
    file = {"name": "results/a", "sha256": "00", "bytes": 3, "rows": 1}
    part = {
        "results": file,
        "turns": file,
        "positions": [[0, 2], [4, 5]],
        "answered": 2,
        "failed": {"model_busy": 1},
        "changed": 0,
        "calls": 9,
        "prompt_tokens": 5,
        "completion_tokens": 5,
        "tokens_unknown": 0,
        "tags_taken_off": 0,
    }
    entry: dict[str, object] = {"slot": 0, "token": 0}
    entry.update(decide.pick(({"opened_by": "process 1"}, {"part": part}, {})))
    match decide.below(8):
        case 5:
            entry.pop(decide.pick(("slot", "token")))
        case 6:
            entry["more"] = 1
        case 7:
            entry["part"] = decide.pick(([], 1, {"results": file}, "part"))
    entry["check"] = shapes.signature(entry)
    data = json.dumps(entry).encode()
    if decide.one_in(3):
        at = decide.place(len(data) - 1)
        data = data[:at] + bytes([data[at] ^ 1 << decide.below(7)]) + data[at + 1 :]
    return data


def journal(decide: Decisions) -> tuple[set[bytes], bytes]:
    """The rows that were written, and a journal of them that something may have happened to."""
    data, rows = b"", set()
    for number in range(1 + decide.below(5)):
        turn = {"position": decide.below(3), "request": f"{decide.below(3)}", "occurrence": number}
        result = {"position": decide.below(3), "calls": decide.below(4)}
        kind, said = decide.pick(
            ((b"T", turn), (b"R", result), (b"T", {**turn, "text": "é\u2028"}))
        )
        row = json.dumps(said, ensure_ascii=False).encode()
        data += shapes.framed(kind, row)
        rows.add(row)
    at = decide.place(len(data) - 1)
    match decide.below(4):
        case 1:  # torn off
            data = data[:at]
        case 2:
            data = data[:at] + bytes([data[at] ^ 1 << decide.below(8)]) + data[at + 1 :]
        case 3:  # a hole
            data = data[:at] + bytes(decide.below(40)) + data[at + decide.below(40) :]
    return rows, data
