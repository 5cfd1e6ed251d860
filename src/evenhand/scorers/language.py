"""Whether a text is English, as far as a scorer that knows English alone has to know it.

Two signs: the script, and how many of the words are among the commonest of English. It needs no
model: it only has to tell what the scorer can read from what it cannot.
"""

import re

LEAST = 8  # our choice, in words: with fewer, only a word that is not English tells
_RARE = 0.1  # our choice: the least share of common words in English; see docs/gateway.md
_SEVERAL = 2  # our choice: so many words of other languages are no names
_FOREIGN = 0.5  # our choice: the largest share of letters that are not Latin
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff\uff21-\uff5a\U0001d400-\U0001d6a3]")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_LETTERS = 0.8  # our choice: the least share of letters and blanks in a line of prose
_LETTER = re.compile(r"[^\W\d_]")
# Common words of English that are no common words of another language in Latin letters.
ENGLISH = frozenset(
    """the and that it with his they be this have from or had but not what all were when your can
    said there use each which she how their if up other about out many then them these some her
    would make like him into time has look two more write see number could people my than first
    been who its now find long down day did get made part new sound take only little work know
    place years live back give most very after things our just name good think say great where help
    through much before right too means old any same tell follow came want show also around form
    three small put end does another well large must even such because turn here why ask went read
    need different home us try kind again change off play away house point found still learn should
    world you yes don't doesn't isn't aren't i'm it's you're they're that's can't won't never always
    every being those while during between however without within against under both upon own since
    until though although might shall whether itself himself themselves are at said is of
    by""".split()
)
# Common words of other languages in Latin letters that are no common words of English.
OTHER = frozenset(
    """el la los las una que por para con como más pero sus muy esta este estos esta son está eso
    ser todos todo nos les ellos mujeres hombres es y lo del al
    o os uma não mais são seus você vocês eles elas isso esse essa nem meu minha das dos um ao
    il gli che di una sono non per più questo questa tutti loro delle della dei degli nel anche mi
    le des est une pas pour dans sur avec sont vous nous ils elles ces cette tous je ne qui au du et
    der das und ist nicht ein eine einen zu den mit sich auf für sind wie von dem auch wir ich diese
    alle es sie werden haben kein keine
    het een en niet zijn van dat die ik je hebben worden deze naar ook maar voor aan op te zo geen
    nie się jest na że jak są ale tak wszyscy tych tym ich przez dla
    och att det som på inte är av med till jag ikke på og bir ve bu için değil ile çok
    yang dan di tidak dengan untuk
    hai hain ko ke ki ka se aur nahi nahin mein par bhi ye yeh woh tum sab""".split()
)


def is_english(text: str) -> bool | None:
    """Say whether a text is English. Code, tables and JSON say nothing of it.

    Args:
        text: Any text.

    Returns:
        None where it has too few words to tell.
    """
    if _in_another_script(text):
        return False
    words = _words(_prose(text))
    english = sum(word in ENGLISH for word in words)
    other = sum(word in OTHER for word in words)
    if len(words) < LEAST:
        return False if other > english else None
    return english >= _RARE * len(words) and english > other


def is_another_language(passage: str) -> bool:
    """Say whether a passage of an English text is surely not English. Names, formulas and lists
    have few common words too: here only words of other languages count, or another script."""
    if _in_another_script(passage):
        return True
    words = _words(passage)
    other = len(OTHER.intersection(words))
    return other >= _SEVERAL and other > len(ENGLISH.intersection(words))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower().replace("’", "'"))


def _in_another_script(text: str) -> bool:
    letters = len(_LETTER.findall(text))
    return letters >= LEAST and len(_LATIN.findall(text)) < (1 - _FOREIGN) * letters


def _prose(text: str) -> str:
    """The lines of a text that are mostly letters and blanks, without code."""
    return "\n".join(line for line in _CODE.sub("", text).splitlines() if _is_prose(line))


def _is_prose(line: str) -> bool:
    return sum(sign.isalpha() or sign.isspace() for sign in line) >= _LETTERS * len(line)
