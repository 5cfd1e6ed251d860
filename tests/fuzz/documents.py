"""Documents that are nearly right: valid JSON with one or several things done to it."""

from collections.abc import Callable, Mapping

from .decisions import Decisions

_SCALARS = ("1", "0", '"a"', "true", "null", "-7", "0.5", '""', "[]", "{}", "100", "1e2", '"A"')
_ODD = (
    *("NaN", "Infinity", "-Infinity", "1e999", "-1e400", "1e-999", "-0", "-0.0", "1.0", "0.1e1"),
    *(
        "9" * 299,
        "9" * 300,
        "9" * 301,
        "-" + "9" * 299,
        "-" + "9" * 300,
        "9" * 5000,
        "0." + "1" * 400,
    ),
    *(
        "01",
        "+1",
        ".5",
        "1.",
        "-",
        "--1",
        "1e",
        "1e+",
        "0x1",
        "1_0",
        "٣",
        "1e5000",
        "18446744073709551616",
        "4294967296",
    ),
    *(
        "True",
        "None",
        "nul",
        "tru",
        "undefined",
        "'a'",
        "",
        ",",
        "[1,]",
        '{"a":1,}',
        "{1:2}",
        '{"a"}',
    ),
    *('"\\ud800"', '"\\udc00\\ud800"', '"\\ud83d\\ude00"', '"\\uD83D"', '"\ud800"', '"\\u0000"'),
    *(
        '"\x00"',
        '"\n"',
        '"\t"',
        '"\x1f"',
        '"\x7f"',
        '"\\x41"',
        '"\\u12"',
        '"\\u00e9"',
        '"\\/"',
        '"\\',
    ),
    *(
        '"a',
        '"[[[[{{"',
        '"\\"]"',
        '"😀"',
        '"\u2028"',
        '"1"',
        '"true"',
        '"0.5"',
        '[["a"]]',
        "[true]",
        "/**/1",
    ),
)
_KEYS = ('"a"', '"b"', '"\\u0061"', '""', '"reason"', '"\\ud800"', '"a\\u0000"')
_BLANKS = ("", " ", "\n", "\t", "\r\n", "\u00a0", "\x0c", "\ufeff", "\x00", "\u2003")
_TAILS = ("", " ", "x", "{}", "\n\n", "\x00", ",", "]", "// no", "\ufeff", "\u00a0")
_FENCES = (
    *("```json\n{}\n```", "```\n{}\n```", "```json \t\n{}```", "\n ```json\n{}\n  ```\n\u00a0"),
    *("```JSON\n{}\n```", "```json{}```", "```json\n{}", "{}\n```", "````json\n{}\n````"),
    *("```json\n```json\n{}\n```\n```", "~~~\n{}\n~~~", "```python\n{}\n```", "```\n{}\n``` done"),
)


def scalar(decide: Decisions) -> str:
    return decide.pick(_ODD) if decide.one_in(3) else decide.pick(_SCALARS)


def value(decide: Decisions, depth: int = 0) -> str:
    """A JSON value, most often a valid one."""
    kind = decide.below(4) if depth < 4 else 0
    if kind < 2:
        return scalar(decide)
    blank = decide.pick(_BLANKS) if decide.one_in(8) else ""
    inner = [value(decide, depth + 1) for _ in range(decide.below(4))]
    if kind == 2:
        return "[" + blank + ",".join(inner) + "]"
    return "{" + ",".join(f"{decide.pick(_KEYS)}:{blank}{one}" for one in inner) + "}"


def nested(decide: Decisions, inner: str) -> str:
    """`inner` under so many brackets that 32 levels are just reached, passed, or forgotten."""
    levels = 28 + decide.below(8)
    if decide.one_in(16):
        levels = decide.pick((200, 3_000, 60_000))
    if decide.one_in(2):
        return '{"a":' * levels + inner + "}" * levels
    return "[" * levels + inner + "]" * (levels - decide.one_in(8))


def json_text(decide: Decisions) -> str:
    text = value(decide)
    if decide.one_in(6):
        text = nested(decide, text)
    return dressed(decide, text)


def dressed(decide: Decisions, text: str) -> str:
    """What a model or an editor puts around and into JSON."""
    match decide.below(8):
        case 4:
            return decide.pick(_BLANKS) + text + decide.pick(_TAILS)
        case 5:
            return decide.pick(_FENCES).replace("{}", text)
        case 6:
            at = decide.place(len(text))
            return (
                text[:at] + chr(decide.pick((34, 92, 44, 58, 0, 123, 125, 0xD800, 96))) + text[at:]
            )
        case 7:
            at = decide.place(len(text))
            return text[:at] + text[at + 1 + decide.below(3) :]
    return text


def object_text(
    decide: Decisions, fields: Mapping[str, tuple[str, ...]], extra: tuple[str, ...] = ()
) -> str:
    """An object with these fields, each with one of its values; then some of it is spoilt."""
    pairs = [(f'"{name}"', decide.pick(values)) for name, values in fields.items()]
    if not decide.one_in(3):
        for _ in range(1 + decide.below(2)):
            _spoil(decide, pairs, extra)
    text = "{" + ",".join(f"{key}:{said}" for key, said in pairs) + "}"
    return dressed(decide, text)


def _spoil(decide: Decisions, pairs: list[tuple[str, str]], extra: tuple[str, ...]) -> None:
    at = decide.below(len(pairs)) if pairs else 0
    key, said = pairs[at] if pairs else ('"a"', "1")
    spoilt: tuple[Callable[[], None], ...] = (
        pairs.reverse,
        lambda: pairs.insert(0, (decide.pick(_KEYS), scalar(decide))),
        lambda: pairs.append((key, scalar(decide))),  # a key twice
        lambda: pairs.insert(
            at, (key.replace("a", "\\u0061"), said)
        ),  # the same key, spelt otherwise
        lambda: pairs.__setitem__(slice(at, at + 1), []),
        lambda: pairs.__setitem__(slice(at, at + 1), [(key, value(decide))]),
        lambda: pairs.__setitem__(
            slice(at, at + 1), [(key, decide.pick(extra) if extra else said)]
        ),
        lambda: pairs.__setitem__(slice(at, at + 1), [(key, f"[{said}]")]),
        lambda: pairs.__setitem__(slice(at, at + 1), [(key, f'"{said}"')]),  # a coercion
        lambda: pairs.__setitem__(slice(at, at + 1), [(key.upper(), said)]),
    )
    decide.pick(spoilt)()
