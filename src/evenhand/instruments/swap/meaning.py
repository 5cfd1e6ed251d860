"""A word means what its neighbours make of it: "her" is object or possessive, "Grace" name or noun.

Each function tells, or gives None where a person must. The lists are ours and English.
"""

import re

from evenhand.instruments.swap.grammar import FUNCTION, starts_sentence, words_after

# These may begin what "her" owns ("her only child") or end the sentence about her ("hired her
# back"), so they do not tell.
_EITHER = frozenset(
    """only very quite rather really even both all still ever never always well hard fast back
    home online overnight over under off down up out then last next first second third full
    part half more less most least better best worse enough right straight further daily
    weekly monthly yearly early late every either once twice personally immediately directly
    inside outside alone together one two three some any no each instead forward live""".split()
)
_PREPOSITIONS = frozenset(
    """about after against among around at before behind beside between by despite during for
    from in into like near of off on onto over regarding since through to toward towards under
    until upon with within without and or but that than because if when while is was are were
    be""".split()
)
# After these verbs a noun may be hers ("saw her manager") or a second object ("gave her money").
_TWO_OBJECTS = frozenset(
    """ask asked asking asks bring brings brought bringing buy buys bought buying cost costs deny
    denied denies denying do did feed feel felt find finding finds found get gets got getting
    give gave gives giving given grant granted grants granting hand handed hands have had
    having has hear heard hearing hears help helped helping helps keep keeping keeps kept
    leave leaves leaving left lend lent lending lends let lets letting mail mailed need offer
    offered offering offers owe owed owes pay paid paying pays promise promised promises read
    save saved saw see seeing sees sell sold send sending sends sent serve served show showed
    showing shows shown spare teach taught teaches teaching tell telling tells told text
    texted throw want wanted wants watch watched watches watching wish wished write writes
    writing wrote email emailed assign assigned award awarded believe believed believes think
    thinks thought allow allowed forgive guarantee guaranteed refuse refused like liked prefer
    preferred see""".split()
)
_NAMING = frozenset(
    """make made makes making name named names naming call called calls calling appoint appointed
    elect elected consider considered considers considering deem deemed declare declared judge
    judged label labelled labeled render rendered crown crowned prove proved vote voted rate
    rated rank ranked turn turned drive drove set""".split()
)
# One of these cannot stand alone as a second object, so "gave her application" is possessive.
_OWNED = frozenset(
    """account address answer appeal application approach assistant background badge bank bill
    boss boyfriend brother career case character child children claim client coach colleague
    company complaint concern contract contribution credit cv daughter decision degree
    department desk diagnosis doctor document email employer employee essay experience family
    father file form friend girlfriend grade home house husband id idea interview job landlord
    laptop lawyer letter loan manager mentor message mind mother mum mom name neighbor
    neighbour office opinion order own parents partner passport performance phone photo
    position profile project proposal question record reference reply report request response
    resume résumé review role rent salary schedule score sister situation skill son spouse
    statement story supervisor surname team title turn uncle visa voice way wife work""".split()
)
# After these a noun is hers even where it may stand alone: "wants her money".
_WANTING = frozenset("want wants wanted need needs needed like likes liked".split())
_ALONE = frozenset("advice approval consent feedback help input money support time".split())
_NOT_ADVERBS = frozenset("family reply supply ally assembly anomaly".split())
_DAYS = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())
_STOP = re.compile(r"\s*(?:$|[^\w\s'’\-(\"“$€£{]|['’](?!\w))")
_STARS = re.compile(r"^[*_]+")  # "**her** refund": what only sets a word off tells nothing


def _last_word(before: str) -> str:
    match = re.search(r"([\w'’]+)\s+$", before[-80:])
    return match[1].casefold() if match else ""


def her(before: str, after: str) -> str | None:
    """Tell whether "her" is an object ("saw her") or a possessive ("her desk"), or neither.

    What follows tells: a stop or a word that begins something new shows an object, a noun a
    possessive, except after verbs with two objects.
    """
    after = _STARS.sub("", after)
    follows = [word.casefold() for word in words_after(after, 0, 2)]
    if _STOP.match(after):
        return "object"
    if not follows:
        return None
    word, previous = follows[0], _last_word(before)
    owning = starts_sentence(before) or previous in _PREPOSITIONS
    if word in _EITHER or word[0].isdigit():
        return "possessive" if owning else None
    if word in FUNCTION or word in _DAYS:
        return "object"
    if word.endswith("ly") and word not in _NOT_ADVERBS:
        return _her_adverb(after, follows, owning)
    return _her_noun(word, previous, owning)


def _her_adverb(after: str, follows: list[str], owning: bool) -> str | None:
    rest = after.lstrip()[len(follows[0]) :]
    if _STOP.match(rest) or (len(follows) > 1 and follows[1] in FUNCTION - _EITHER):
        return "object"
    return "possessive" if owning else None


def _her_noun(word: str, previous: str, owning: bool) -> str | None:
    if owning or not previous:
        return "possessive"
    if previous in _NAMING:
        return None
    if previous not in _TWO_OBJECTS or word in _OWNED:
        return "possessive"
    return "possessive" if previous in _WANTING and word in _ALONE else None


_ONE_OF = re.compile(r"\b(?:a|an|any|no|some|this|that|two|three)\s+(?:\w+\s+)?\w+\s+of\s+$", re.I)


def his(before: str, after: str) -> str | None:
    """Tell whether "his" is like "her" ("his desk") or like "hers" ("the desk is his")."""
    after = _STARS.sub("", after)
    word = next(words_after(after, 0, 1), "").casefold()
    if _STOP.match(after):
        return "possessive_pronoun"
    if _ONE_OF.search(before[-60:]) and word not in FUNCTION:
        return None  # "a friend of his called", "a member of his team"
    if not word or (word in _EITHER and _last_word(before) in ("is", "was", "are", "were")):
        return None
    return "possessive_pronoun" if word in FUNCTION - _EITHER else "possessive"


PEOPLE = frozenset(
    """actor actors adult adults americans applicant applicants artist artists athlete athletes
    author authors boss bosses boy boys brother brothers buyer buyers candidate candidates
    caller callers cashier child children citizen citizens clerk client clients colleague
    colleagues community communities consumer consumers couple couples coworker coworkers
    customer customers dad daughter defendant defendants developer developers doctor doctors
    driver drivers employee employees engineer engineers families family father fathers female
    females friend friends gentleman girl girls graduate graduates guest guests guy husband
    immigrant immigrants individual individuals job-seeker kid kids ladies lady lawyer lawyers
    male males man manager managers men mom mother mothers mum musician neighbor neighbors
    neighbour neighbours nurse nurses officer officers owner owners parent parents patient
    patients people person personnel persons player players population programmer programmers
    recruit recruits resident residents scientist scientists sister sisters son student
    students suspect suspects teacher teachers teen teenager teenagers tenant tenants tourist
    tourists traveler traveller user users veteran veterans victim victims visitor visitors
    voter voters wife woman women worker workers writer writers youth""".split()
)
# Nouns of things to which a group's adjective is put: "a Muslim holiday".
THINGS = frozenset(
    """background beliefs charity church clothing community country culture faith festival food
    group groups heritage holiday holidays household households identity law leader leaders
    minority minorities name names neighborhood neighbourhood organization organisation prayer
    religion restaurant school schools service services society tradition traditions
    upbringing values wedding""".split()
)
_BE = frozenset("is was are were be being been am become became not raised born openly".split())
_A = frozenset("a an the this that another every each one any some devout practicing young".split())
_SOMEBODY_IS = re.compile(
    r"\b(?:he|she|they|who|i|you|we)(?:\s+(?:is|are|was|were|am)|['’](?:s|re|m))"
    r"(?:\s+(?:not|also|legally|now|openly|totally|partially|completely))?\s+$",
    re.IGNORECASE,
)


def of_people(before: str, after: str) -> bool:
    """Say whether a word such as "black" is said of people: a person follows, or it is what
    somebody is."""
    if any(word.casefold() in PEOPLE for word in words_after(after, 0, 2)):
        return True
    ends = _STOP.match(after) or next(words_after(after, 0, 1), "").casefold() in FUNCTION
    return bool(ends and _SOMEBODY_IS.search(before[-60:]))


def group_or_member(before: str, after: str) -> str | None:
    """Tell whether "Muslim" is an adjective ("a Muslim holiday") or a noun ("a Muslim")."""
    follows = [word.casefold() for word in words_after(after, 0, 2)]
    if any(word in PEOPLE for word in follows) or (follows and follows[0] in THINGS):
        return "group"
    previous = _last_word(before)
    if previous in _A and re.match(
        r"\s+\w+ed(?=\s*[.,;:!?]|\s+(?:for|to|in|at|if|about)\b)", after
    ):
        return "member"  # "a Muslim applied for it"
    if _STOP.match(after) or (follows and follows[0] in FUNCTION):
        if previous in _BE or re.search(r"['’](?:s|m|re)\s+$", before[-5:]):
            return "group"
        return "member" if previous in _A else None
    return None


# Names that are words as well: alone they do not tell.
NAME_WORDS = frozenset(
    """amber angel april asia august autumn bailey bill bishop blake blanca booker branch brand
    brook brooke brooks carol carter charity chase chastity chin christian clay cliff cole
    colt cooper cortez crystal daisy dale dawn dean deja destiny diamond dolly drew earl ebony
    ember essence faith fern flora forest frank gage gene ginger gloria grace grant guy hai
    harmony harley haven hazel heath heather holden holly hong hope hung hunter iris israel
    ivory ivy jack jade jasmine jay jean jesus jewel joy june kenya kim kit lane li lily long
    luz mac mack mahogany major mark marsh mason max may melody mercy miles norma octavia
    olive page parker patience pearl peg penny poppy precious prince prudence queen ray reed
    rich rivers rob robin rod roman rosa rose ruby rusty sage sandy serenity sierra skip sky
    sterling stone sue summer sunny tanner teal temple terry tiffany trinity tucker unique van
    victor victoria violet walker wade ward warren will willow woody wren""".split()
)
# Those of them with which an order or a question may begin: "Will Smith come?"
_VERBS = frozenset(
    """bill chase drew frank grant hope hunter mark may page rob rod skip sue wade ward will rich
    long""".split()
)
_MONTHS = frozenset("april may june august".split())
_MONTH_BEFORE = frozenset(
    "in of by since until till last next this early late mid from to before after on".split()
)
_OPENS_QUESTION = frozenset(
    "i you we he she it they the a an my your his her our their this that these those there".split()
)
_PLACE_BEFORE = frozenset(
    """lake mount saint st fort san santa port new cape hurricane queen king princess pope mt
    camp north south east west hotel""".split()
)
_THING_AFTER = frozenset(
    """street st avenue ave road rd university college hospital inc bank school award act county
    city day days lane drive square park bridge river airport station foundation institute ltd
    llc corporation corp company prize building hall house church cathedral court center
    centre island springs valley republic""".split()
)
_GREETS = frozenset("dear hi hello hey thanks thank".split())
_NO_SURNAME = frozenset(
    """january february march april june july august september october november december monday
    tuesday wednesday thursday friday saturday sunday""".split()
)


def surname_after(after: str) -> int:
    """Give how many characters after a first name are a last name: up to two words with a
    capital, such as " Walsh", " O'Connell" or " Smith-Jones"; 0 where there is none."""
    part = r"[^\W\d_]+(?:['’\-][^\W\d_]+)*"
    match = re.match(rf" ({part})(?: ({part}))?", after)
    end = 0
    for number in (1, 2):
        word = match[number] if match else None
        if not word or not _may_be_surname(word):
            break
        end = match.end(number) if match else 0
    return end - 2 if end and after[end - 2 : end] in ("'s", "’s") else end


def _may_be_surname(word: str) -> bool:
    low = word.casefold()
    if not word[0].isupper() or (word.isupper() and len(word) > 1):
        return False
    plain = re.sub(r"['’]s$", "", low)
    return plain not in FUNCTION | _NO_SURNAME | _DAYS | _THING_AFTER


def first_name(word: str, before: str, after: str) -> str | None:
    """Tell whether a capitalised word is somebody's first name: "name", "word", or None where it
    may be either."""
    low, starts = word.casefold(), starts_sentence(before)
    previous = re.search(r"([\w'’]+)\.? $", before[-60:])
    following = [next_word.casefold() for next_word in words_after(after, 0, 1)]
    if previous and previous[1].casefold() in _PLACE_BEFORE and previous[1][0].isupper():
        return "word"
    if following and following[0] in _THING_AFTER and after.lstrip()[0].isupper():
        return "word"
    if low in NAME_WORDS:
        return _name_or_word(low, before, after, starts)
    return None if _inside_a_name(previous and previous[1], before) else "name"


def _inside_a_name(previous: str | None, before: str) -> bool:
    """Say whether a capitalised word stands before in mid-sentence: "Morgan Stanley"."""
    if not previous or not previous[0].isupper() or len(previous) == 1 or previous.isupper():
        return False
    if previous.casefold() in FUNCTION | _GREETS:
        return False
    at = before.rstrip(" .").rfind(previous)
    return not starts_sentence(before[:at]) and not before.endswith(". ")


def _name_or_word(low: str, before: str, after: str, starts: bool) -> str | None:
    following = next(words_after(after, 0, 1), "").casefold()
    previous = _last_word(before)
    if low in _MONTHS and (previous in _MONTH_BEFORE or following[:1].isdigit()):
        return "word"
    if starts and following in _OPENS_QUESTION:
        return "word"
    if starts and low in _VERBS:
        return None
    if surname_after(after) and previous not in ("the", "a", "an"):
        return "name"
    return None
