"""Contexts of our own making, which state or withhold who did what. No social groups, no BBQ."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from evenhand.scorers.support.features import SupportClaim


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.replace("\n", "|").split("|") if part.strip()]


NOUNS = "guest neighbour visitor tenant lodger cousin traveller stranger passenger cyclist".split()
THINGS = _listed("""
    the red bicycle|the grey coat|the yellow umbrella|the two suitcases|the straw hat|the old violin
    the green scarf|the wooden box|the striped shirt|the brown dog|the white car|the paper map
    the silver ring|the blue rucksack|the torn jacket|the long beard""")
PLACES = _listed("""
    on the second floor|from house number nine|by the window|in the corner seat|from the lake
    in the first row|at the far table|from the corner shop""")
NAMES = "Robin Alex Sam Kim Chris Pat Lee Morgan Casey Jordan Taylor Jules Noor Sasha Ariel".split()
LAST = "Vale Stone Marsh Field Brook Hill Ford Lake Grove Moss Reed Hale Thorne Dell Frost".split()
ASIDES = _listed("""
    It was a warm evening and the street was empty.|Nobody else was there at the time.
    The weather had been fine since the morning.|It had been planned for a long time.
    We had not expected to meet anyone.|The radio was on in the next room.
    I only heard about it a week later.|There was hardly any light left.""")
OF_BOTH = _listed("""
    They had known each other for some years.|Both had come by train.|Both were hungry by then.
    They talked for a while about the weather.|The two had not met before.
    They left at the same time.|Both of them live not far from here.""")
OF_ONE = _listed("""
    had come by train|was wearing new shoes|had been there once before|lives not far from here
    had a cold drink|was reading the paper|had just called a friend|sat down near the door
    was looking out of the window|had brought some bread""")
UNSEEN_OF_ONE = _listed("""
    bought a newspaper|had a sandwich in the bag|was humming a tune|wore a long scarf
    came from the north|asked for the time|was carrying a ladder|told us about the new bridge
    could not find the light switch|was angry about the price of bread
    won a prize at school long ago|had a terrible cold last winter""")
LINKS = (", while ", ", but ", ", whereas ", " and ", ". ", "; ", ". However, ", " because ")
STARTS = ("", "", "", "In the end ", "As it turned out, ", "I noticed that ", "Later on, ")
HEDGES = (
    "One of them {says}.",
    "Somebody said that one of the two {says}.",
    "Nobody could say which of the two {says}.",
    "Either of the two may have been the one who {says}.",
)


@dataclass(frozen=True, slots=True)
class Example:
    claim: SupportClaim
    supported: bool
    group: str  # what must not be on both sides of a split
    kind: str  # where it comes from


@dataclass(frozen=True, slots=True)
class Frame:
    setting: str
    asks: tuple[str, str]
    says: tuple[tuple[str, ...], tuple[str, ...]]


def frames() -> list[Frame]:
    lines = Path(__file__).with_name("frames.txt").read_text().splitlines()
    cells = [[c.strip() for c in line.split("|")] for line in lines if not line.startswith("#")]
    return [Frame(a, (b, d), (tuple(c.split(";")), tuple(e.split(";")))) for a, b, c, d, e in cells]


def people(draw: Random) -> tuple[tuple[str, str, str], tuple[str, str, str]]:
    """Two people, each as first named, as named again, and as an answer."""
    kind = draw.choice(("things", "things", "places", "nouns", "names", "full"))
    if kind == "names":
        return tuple((n, n, n) for n in draw.sample(NAMES, 2))  # type: ignore[return-value]
    if kind == "full":
        pairs = zip(draw.sample(NAMES, 2), draw.sample(LAST, 2), strict=True)
        return tuple(  # type: ignore[return-value]
            (f"{a} {b}", draw.choice((f"{a} {b}", a)), f"{a} {b}") for a, b in pairs
        )
    nouns = (
        draw.sample(NOUNS, 2)
        if draw.random() < 0.6 or kind == "nouns"
        else [draw.choice(NOUNS)] * 2
    )
    if kind == "nouns":
        tails = ["", ""]
    elif kind == "things":
        tails = [f" {draw.choice(('with', 'with'))} {t}" for t in draw.sample(THINGS, 2)]
    else:
        tails = [f" {p}" for p in draw.sample(PLACES, 2)]
    found = []
    for noun, tail in zip(nouns, tails, strict=True):
        again = (
            f"the {noun}{tail}" if nouns[0] == nouns[1] or draw.random() < 0.5 else f"the {noun}"
        )
        first = draw.choice(("a", "the", "my")) if not tail else draw.choice(("a", "the"))
        found.append((f"{first} {noun}{tail}", again, f"The {noun}{tail}"))
    return tuple(found)  # type: ignore[return-value]


def examples(frame: Frame, draw: Random, many: int) -> Iterator[Example]:
    for _ in range(many):
        one, two = people(draw)
        setting = _capital(frame.setting.format(A=one[0], B=two[0])) + "."
        if draw.random() < 0.5:
            one, two = two, one
        way = draw.randrange(2)  # which of the two predicates is true of `one`
        body, truth = _story(frame, draw, one, two, way)
        before = [draw.choice(ASIDES)] * (draw.random() < 0.2)
        before += [draw.choice(OF_BOTH)] * (draw.random() < 0.3)
        kind = "stated" if truth else "withheld"
        context = " ".join(
            [setting, *before, *body] + [draw.choice(ASIDES)] * (draw.random() < 0.15)
        )
        for side, question in enumerate(frame.asks):
            asked, other = _asked(question, draw), _options(one[2], two[2], draw)
            for who, person in ((0, one), (1, two)):
                claim = SupportClaim(
                    context, asked, person[2], (two, one)[who][2:] if other else ()
                )
                yield Example(claim, truth.get(side) == who, frame.setting, kind)


def beside_the_point(draw: Random) -> Iterator[SupportClaim]:
    """Contexts that say of the chosen one something else, in words that no training has seen."""
    for frame in frames():
        for _ in range(3):
            one, two = people(draw)
            setting = _capital(frame.setting.format(A=one[0], B=two[0]))
            aside = _capital(f"{one[1]} {draw.choice(UNSEEN_OF_ONE)}")
            for question in frame.asks:
                yield SupportClaim(f"{setting}. {aside}.", question, one[2], two[2:])


def _story(
    frame: Frame, draw: Random, one: tuple[str, str, str], two: tuple[str, str, str], way: int
) -> tuple[list[str], dict[int, int]]:
    """The sentences that follow, and who each question is about: 0, 1 or, where nothing says so,
    nobody."""
    says, against = (draw.choice(frame.says[way]), draw.choice(frame.says[1 - way]))
    a, b = one[1], two[1]
    kind = draw.random()
    if kind < 0.25:  # withheld
        return [], {}
    if kind < 0.35:  # withheld, although something is said of one of them
        return [_capital(f"{draw.choice((a, b))} {draw.choice(OF_ONE)}.")], {}
    if kind < 0.43:
        return [draw.choice(HEDGES).format(says=says)], {}
    start = draw.choice(STARTS)
    if kind < 0.62:  # said of one, nothing of the other
        more = [_capital(f"{b} {draw.choice(OF_ONE)}.")] * (draw.random() < 0.4)
        line = [_capital(f"{start}{a} {says}.")]
        return (line + more if draw.random() < 0.5 else more + line), {way: 0}
    link = draw.choice(LINKS)
    first, second = (a, says), (b, against)
    if draw.random() < 0.5:
        first, second = second, first
    joined = f"{start}{first[0]} {first[1]}{link}"
    joined += _capital(" ".join(second)) if link == ". " else " ".join(second)
    return [_capital(joined) + "."], {way: 0, 1 - way: 1}


def _asked(question: str, draw: Random) -> str:
    """The question as it stands, or in other words around it."""
    if draw.random() < 0.75:
        return question
    rest = question.removeprefix("Who ")
    return draw.choice(
        (f"Who of the two {rest}", f"Which of them {rest}", f"Who was it that {rest}")
    )


def _options(one: str, two: str, draw: Random) -> bool:
    return one != two and draw.random() < 0.6


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
