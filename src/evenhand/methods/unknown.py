"""Which option of a question says that the answer is not known, told by its words alone."""

import re

# An option that as a whole says "not known": the ten spellings of BBQ, and others like them.
_UNKNOWN = re.compile(
    r"""
    (?:(?:it|this|that|the\ answer|there)\ )?(?:is\ )?
    (?: unknown | undetermined | unanswerable | unclear | uncertain | indeterminate
      | not\ (?:known|answerable|determined|determinable|clear|certain|sure|stated|specified)
      | (?:not\ enough|insufficient|too\ little)\ (?:info|information|context|evidence|data)
      | (?:cannot|can\ not|can't)\ (?:be\ )?
        (?:known?|determined?|answer(?:ed)?|said|say|told|tell|inferred|decided?)
      | (?:(?:i|we)\ )?(?:don't|do\ not)\ know
      | impossible\ to\ (?:know|determine|answer|say|tell|decide)
    )
    (?:\ (?:from|with|given|based\ on|to)\ .+)?
    """,
    re.VERBOSE,
)
_QUOTES = str.maketrans("“”‘’", "\"\"''")


def unknown_option(choices: tuple[str, ...]) -> int | None:
    """The first option that says the answer is not known, told by its words alone."""
    for index, option in enumerate(choices):
        if _UNKNOWN.fullmatch(plain(option).strip(" .!()")):
            return index
    return None


def plain(text: str) -> str:
    """Case, spaces and the kind of quotation marks do not count."""
    return " ".join(text.translate(_QUOTES).casefold().split())
