"""What of a query leaves the machine: no name, no address, no number."""

import itertools
import re
import unicodedata

import pytest

from evenhand.agents.tools.search import SearchModel, SearXNG
from evenhand.agents.tools.search.privacy import MOST_CHARACTERS, MOST_WORDS, clean, listed

from .people import GIVEN, contexts
from .servers import asking, saying, searxng_results

CONTEXT = (
    "Jamal Washington met Anne-Marie O'Brien at the library. Łukasz Müller's sister was there. "
    "Teachers came too, and the teachers of a Muslim school. Write to rose.tyler@example.org. "
    "JOSHUA WAS LATE. Dr. Grant gave a grant to Jim Black, and Christian Weber to the Black man."
)


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("stereotypes about Muslim women", "stereotypes about Muslim women"),
        ("jamal washington", ""),
        ("WASHINGTON's schools", "schools"),
        ("anne marie obrien brien library", "library"),
        ("lukasz muller sister", "sister"),
        ("Muellers lukasz's library", "library"),
        ("rose tyler library", "library"),
        ("joshuas library", "library"),
        ("jamalwashington library", "library"),
        ("grant money", "money"),
        ("black people and chess", "people and chess"),  # of a Jim Black, so the word stays here
        ("christian schools", "schools"),  # of a Christian Weber
        ("teachers at school", "teachers at school"),
        ("Teachers at school", "Teachers at school"),  # the text has them in lower case too
        ("Statistics on women in chess", "Statistics on women in chess"),
        ("women in Zurich", "women in"),  # a capital of the query itself
        ("the of and it", ""),
        ("maria library", "library"),  # a given name that the text does not know
        ('"muslim women" site:example.com -crime AND chess', "muslim women crime chess"),
        ("intitle:women", "women"),
        ("women 1990 3rd covid19 b2b", "women"),
        ("women five five five", "women"),
        ("穆罕默德 محمد women", "women"),  # no capitals there to know a name by
        ("kofi.a @ example.org women", "women"),
        ("deShawn women", "women"),
        ("women\u200b and\u202e men\x00", "women and men"),
    ],
)
def test_a_query_is_sent_without_what_may_be_a_name(query: str, sent: str) -> None:
    assert clean(query, CONTEXT) == sent


def test_a_query_is_no_longer_than_twelve_words_or_a_hundred_and_twenty_characters() -> None:
    letters = [f"word{a}{b}" for a, b in itertools.product("abcdef", repeat=2)]
    assert len(clean(" ".join(letters), "").split()) == MOST_WORDS
    long = " ".join("abcdefghij"[n:] + "abcdefghijklmnop" * 2 for n in range(8))
    assert 80 < len(clean(long, "")) <= MOST_CHARACTERS


def test_a_word_is_sent_once() -> None:
    thrice = "women and Women and women"
    assert clean(thrice, "") == "women and"


def test_the_lists_do_not_contradict_each_other() -> None:
    names = listed("given_names")
    assert not names & listed("function_words")
    assert not names & listed("topic_words")
    assert not names & listed("identity_words")
    assert len(names) > 400


def test_most_of_the_planted_names_are_in_no_list() -> None:
    assert sum(name.lower() in listed("given_names") for name in GIVEN) <= 6


_LOOKS = str.maketrans("łøı", "loi")


def _folded(text: str) -> str:
    split = unicodedata.normalize("NFKD", text.casefold().translate(_LOOKS))
    return "".join(sign for sign in split if not unicodedata.combining(sign))


def _pieces(private: tuple[str, ...]) -> list[str]:
    """What must not be found, in the reader's letters: O'Brien is found by "brien" already."""
    return [piece for name in private for piece in re.findall(r"\w{2,}", _folded(name))]


async def test_a_thousand_contexts_with_planted_people_send_none_of_them() -> None:
    leaks: list[tuple[str, str]] = []
    groups = 0
    async with saying(searxng_results("found")) as server:
        model = SearchModel(SearXNG(server.url))
        for planted in contexts(1_000):
            server.asked.clear()
            sentences = re.split(r"(?<=[.!?]) ", planted.text)
            lower = " ".join(_pieces(planted.private))
            for query in (planted.text, *sentences, lower, f"{planted.text.lower()} {lower}"):
                await model.complete(asking(query, planted.text))
            sent = [asked["q"] for asked in server.asked]
            groups += planted.group in sent[0].split()
            folded = _folded(" ".join(sent))
            found = [piece for piece in _pieces(planted.private) if piece in folded.split()]
            found += [p for p in _pieces(planted.private) if len(p) >= 5 and p in folded]
            found += re.findall(r"\d", folded)
            leaks += [(piece, planted.text) for piece in found]
        await model.close()
    assert leaks == []
    assert groups == 1_000


async def test_a_query_of_nothing_but_names_is_not_sent_at_all() -> None:
    async with saying(searxng_results("found")) as server:
        model = SearchModel(SearXNG(server.url))
        said = await model.complete(asking("Jamal Washington +49 30 1234567", CONTEXT))
        await model.close()
    assert server.asked == []
    assert said.samples[0].text == '{"query":"","engine":"searxng@1","hits":[]}'
