"""Openers by which a debater says who they are: "As a 60-year-old, …", "Speaking as a teacher, …".

They stand in biased statements more often than in the others, so a reward model could learn them
and nothing else.
"""

import re
from typing import Literal

Openers = Literal["strip", "keep", "drop"]

# "As a result, …" names nobody.
_NOBODY = (
    r"(?!(?:result|rule|whole|society|consequence|matter|example|nation|country|community|"
    r"alternative|compromise|start|side|group|collective|species|team|world)\b)"
)
_ABOUT_ME = (
    r"(?:(?:speaking|writing|talking)\s+)?"
    r"(?:(?:from\s+(?:my|the)\s+(?:own\s+)?"
    r"(?:perspective|point\s+of\s+view|viewpoint|standpoint|experience|position)\s+(?:as|of)"
    r"|in\s+my\s+(?:role|position|capacity|work|job|experience)\s+as"
    r"|as)\s+)"
    rf"(?:(?:an?|one)\s+{_NOBODY}|some(?:one|body)\s+|myself\s+)"
)
# To the first comma; to a second one where "I" follows it ("As a retired, kind teacher, I …"); or
# to the "I" where there is no comma.
_CLAUSE_ENDS = (
    r"[^.!?,:;\n]{0,160}?"
    r"(?:,\s*(?:[^.!?,:;\n]{1,60},\s*(?=(?:I|my|we)\b))?|\s(?=(?:I|I'm|I've|I'd|my|we)\b))"
)
_AS_ONE = re.compile(rf"\s*{_ABOUT_ME}{_CLAUSE_ENDS}\s*", re.IGNORECASE)
# "Being a teacher is hard" is a statement.
_BEING = re.compile(
    r"\s*being\s+(?:an?\s|some(?:one|body)\s)[^.!?,:;\n]{0,160}?,\s*(?=(?:I|my|we)\b)",
    re.IGNORECASE,
)
_I_AM = re.compile(
    r"\s*(?:(?:hello|hi)\b[^.!?\n]{0,20}?[,.!]\s*)?I(?:\s+am|'m)\s+([^.!?,\n]{1,120}?)"
    r"(?:[.!]\s+|,?\s+and\s+(?=(?:I|my)\b)|,\s*(?=(?:I|my)\b))",
    re.IGNORECASE,
)
_AGE = re.compile(r"\d+[\s-]*years?[\s-]*old|\d+[\s-]*year", re.IGNORECASE)
_FEWEST_WORDS = 3  # our choice: what is left of a statement that was hardly more than its opener


def without_opener(text: str, role: str) -> str:
    """The statement from where it begins to say something; itself where it has no opener."""
    rest = text.replace("’", "'")
    removed = False
    while length := _opener(rest, role):
        rest, removed = rest[length:].lstrip(), True
    return rest[:1].upper() + rest[1:] if removed else text


def has_opener(text: str, role: str) -> bool:
    return _opener(text.replace("’", "'"), role) > 0


def says_something(text: str) -> bool:
    return len(text.split()) >= _FEWEST_WORDS


def _opener(text: str, role: str) -> int:
    """Its length, 0 for none."""
    label = re.match(rf"\s*[*_\[(]*{re.escape(role)}[*_\])]*\s*:[*_]*\s*", text, re.IGNORECASE)
    match = label or _AS_ONE.match(text) or _BEING.match(text)
    if match is not None:
        return match.end()
    me = _I_AM.match(text)
    return me.end() if me is not None and _is_role(me[1], role) else 0


def _is_role(phrase: str, role: str) -> bool:
    """ "I am a firm believer." is a statement, "I am a teacher." of a teacher is none."""
    role_words = [word for word in re.findall(r"\w+", role.lower()) if len(word) > 2]
    return bool(_AGE.search(phrase)) or any(word in phrase.lower() for word in role_words)
