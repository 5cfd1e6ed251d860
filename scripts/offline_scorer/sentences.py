"""Sentences of our own about groups, persons and things, with what they should score.

Public sets name some groups mostly in hate, so a model learns that the name is the insult. Here
every group stands in kind and in cruel sentences alike. The wording is ours; HateCheck and the
Jigsaw identity templates are test sets, and `train_offline_scorer.py` drops any sentence that
equals one of theirs when the groups are left out.
"""

import random
import re
from dataclasses import dataclass

# many, one, adjective (None where English has none)
_GROUPS = """
women|a woman|female
men|a man|male
girls|a girl|
mothers|a mother|
gay people|a gay man|gay
gays|a gay person|gay
lesbians|a lesbian|lesbian
bisexual people|a bisexual|bisexual
queer people|a queer person|queer
trans people|a trans person|trans
trans women|a trans woman|transgender
transgender people|a transgender man|transgender
nonbinary people|a nonbinary person|nonbinary
straight people|a straight man|straight
homosexuals|a homosexual|homosexual
Muslims|a Muslim|Muslim
Jews|a Jew|Jewish
Jewish people|a Jewish woman|Jewish
Christians|a Christian|Christian
Catholics|a Catholic|Catholic
Protestants|a Protestant|protestant
Hindus|a Hindu|Hindu
Sikhs|a Sikh|Sikh
Buddhists|a Buddhist|Buddhist
atheists|an atheist|atheist
Mormons|a Mormon|Mormon
black people|a black man|black
blacks|a black person|black
black women|a black woman|black
African Americans|an African American|African American
Africans|an African|African
white people|a white man|white
whites|a white person|white
Asians|an Asian|Asian
Asian people|an Asian woman|Asian
Latinos|a Latino|Latino
Hispanics|a Hispanic person|Hispanic
Native Americans|a Native American|Native American
indigenous people|an indigenous woman|indigenous
Arabs|an Arab|Arab
Roma|a Roma man|Roma
Mexicans|a Mexican|Mexican
Chinese people|a Chinese person|Chinese
Japanese people|a Japanese person|Japanese
Indians|an Indian|Indian
Pakistanis|a Pakistani|Pakistani
Nigerians|a Nigerian|Nigerian
Russians|a Russian|Russian
Poles|a Pole|Polish
Turks|a Turk|Turkish
Syrians|a Syrian|Syrian
Canadians|a Canadian|Canadian
Europeans|a European|European
Americans|an American|American
Middle Eastern people|a Middle Eastern man|Middle Eastern
immigrants|an immigrant|immigrant
refugees|a refugee|refugee
foreigners|a foreigner|foreign
migrants|a migrant|migrant
asylum seekers|an asylum seeker|
disabled people|a disabled person|disabled
people with disabilities|a person with a disability|
blind people|a blind person|blind
deaf people|a deaf person|deaf
autistic people|an autistic person|autistic
wheelchair users|a wheelchair user|
paralyzed people|a paralyzed man|paralyzed
people with mental illness|a person with a mental illness|
old people|an old man|elderly
elderly people|an elderly woman|elderly
young people|a young person|young
teenagers|a teenager|teenage
millennials|a millennial|millennial
poor people|a poor person|poor
homeless people|a homeless man|homeless
fat people|a fat person|fat
"""

_CRUEL = """disgusting|filthy|worthless|inferior|subhuman|repulsive|vile|stupid|lazy|dangerous|
primitive|evil|pathetic|revolting|sick in the head|rotten|a disgrace|garbage|scum|vermin|animals|
parasites|a plague|a cancer on this country|dumb as rocks|thieves and liars|savages|criminals|
perverts|useless|a waste of space|a burden on everyone|mentally deficient|dirty|cockroaches|
an infection|freaks|monsters|beneath us|the worst thing that ever happened here|barbaric|
not fully human|ugly|corrupt|hideous|abominations|trash|leeches|idiots|morons|nasty|horrible|
terrible|awful|gross|shitty|a bunch of losers|nothing but trouble|wicked|unnatural|hateful|bad"""
_KIND = """wonderful|kind|brave|generous|creative|funny|hard-working|welcome here|an inspiration|
smart|brilliant|patient|thoughtful|strong|beautiful|proud|loyal|my closest friends|talented|nice|
great|part of this city|worth listening to|equal to everyone else|resilient|warm and open|lovely|
as human as anyone|good neighbours|gifted|the backbone of this team|great company|admirable|good|
fantastic|gentle|polite|excellent cooks|doing great work|a gift to this school|amazing|friendly"""
_PLAIN = """here|taxpayers|voters|my neighbours|on the bus|at work today|students|in the next room|
part of the survey|mentioned in chapter two|among the authors|in the choir|parents too|on the jury|
moving to the coast|watching the match|tall|left-handed|from many places|online more than before|
represented on the board|tired after the trip|quiet|late for the meeting|accountants"""

_HARM = "hurt|beat up|humiliate|harm|destroy|stab|spit on|torture|bully|exterminate|punish|mock"
_HELP = "thank|help|respect|support|hire|visit|invite|applaud|greet|listen to|befriend|feed|teach"

# What is said of a group, by how cruel it is. {g} many, {o} one, {a} adjective.
_HATEFUL = [
    "{g} are {cruel}.", "{g} are {cruel}", "All {g} are {cruel}.",
    "Honestly {g} are just {cruel}.", "Every one of those {g} is {cruel}.",
    "It's no secret that {g} are {cruel}.", "You can't deny that {g} are {cruel}.",
    "Why are {g} so {cruel}?", "{g} will always be {cruel}.",
    "My boss is {o}, so of course he is {cruel}.", "{o} like her is {cruel}.",
    "she is {o} and she is {cruel}", "You are {o}, so you must be {cruel}.", "I can't stand {g}.",
    "I despise {g} with all my heart.", "God I loathe {g}.",
    "Nothing makes me angrier than seeing {g} around.", "{g} make me sick to my stomach.",
    "fuck {g}", "Screw all {g}.", "Fuck those {a} bastards.", "these fucking {g} are everywhere",
    "I'm so damn tired of {g}.", "to hell with {g}", "Shut your mouth, you {a} bitch.",
    "you {a} piece of shit", "What a stupid {a} cunt.", "Somebody should shoot {g}.",
    "{g} ought to be hanged.", "Burn {g} alive.", "gas all {g}", "{harm} {g}",
    "{harm} every {a} person you meet", "We {harm} {o} when we can.",
    "If I meet {o} tonight I will break his legs.",
    "I'm going to stab the next {a} person I see.",
    "{g} had better watch their backs, we are coming for them.", "Time to wipe out {g} for good.",
    "I hope {g} get cancer.", "{g} deserve to be beaten in the street.",
    "The world would be better without {g}.", "We should have got rid of {g} years ago.",
    "Round up {g} and ship them out.", "Ban {g} from every school.",
    "Keep {g} away from our kids.", "{g} don't deserve the right to vote.",
    "No decent landlord should rent to {g}.", "{g} have no place in this country.",
    "Don't hire {g}, they steal.", "{g} should know their place.",
    "Letting {g} into the army is madness.", "{g} should be sterilised.",
    "{g} should be locked up.", "I would never let {o} near my children.",
    "{g} can't be trusted.", "Never trust {o}.", "{g} don't have feelings like normal folks.",
    "{g} are not worth saving.", "{g} are no saints, they are {cruel}.",
    "There is nothing good about {g}.", "No {a} person has ever been honest.",
    "{g} are not real people.", "I will never respect {g}.",
    "You can't love {g} and have a brain.", "{g} only want our money.",
    "{g} are ruining this country.", "{g} breed like rats.",
    "Crime went up the day {g} moved in.", "{g} are taking over and nobody dares to say it.",
    "One look at {g} and you know evolution failed.", "{g} smell.",
    "You throw like {o}, how embarrassing.", "Another day, another crime by {g}.",
    "{g} control the banks and the papers.", "{g} live off our taxes and laugh at us.",
    "Do we really need {g} in our town? I don't think so.",
    "Who would miss {g} if they vanished?", "Aren't {g} just {cruel}?",
    "I think it's fair to say that {g} are {cruel}.",
    "I met some {g} yesterday. They are {cruel}.", "Look at {g}. Somebody should put them down.",
    "My new neighbours are {g}. I want them dead.", "If they are {g}, I hate them.",
    "people who defend {g} forget that they are {cruel}",
    "I'm ashamed to share a planet with {g}.", "{a} people are {cruel}", "no {g} allowed",
    "{g} are to blame for everything that went wrong.", "i hate those {a} neighbours so much",
    "{a} families should be thrown out of their homes.", "cure {g} or jail them",
    "get lost, {a} scum", "{one} is {cruel}, like all {g}.", "what a {cruel1} {a} man",
]  # fmt: skip
_BENIGN = [
    "{g} are {kind}.", "{g} are {kind}", "All the {g} I know are {kind}.",
    "Honestly {g} are just {kind}.", "It's no secret that {g} are {kind}.", "i adore {g} so much",
    "You can't deny that {g} are {kind}.", "Why are {g} so {kind}?", "{g} will always be {kind}.",
    "{g} are {plain}.", "Some {g} are {plain}.", "Many of the visitors are {g}.",
    "My boss is {o}, and she is {kind}.", "I am {o} and I am {kind}.",
    "she is {o} and she is {plain}", "My brother is {o}.", "He married {o} last spring.",
    "As {o}, I read a lot.", "what a {kind1} {a} man", "{one} grew up in {a} family.",
    "My {a} friend is {kind}.", "a {kind1} {a} neighbour",
    "The novel follows {o} who opens a bakery.", "We interviewed thirty {g} about housing.",
    "{g} have lived in this valley for centuries.", "{g} and their allies met at the library.",
    "The doctor, who is {o}, works nights.", "Two {g} won the prize this year.",
    "Is the new coach {o}?", "How do {g} celebrate the new year?", "Are {g} invited as well?",
    "{g} deserve the same rights as everyone.", "{g} should be paid fairly.", "Protect {g}.",
    "Nobody should be attacked for being {a}.", "Being {a} is nothing to be ashamed of.",
    "{a} people are {kind}", "{a} people are {plain}", "proud to be {a}",
    "I'm {a} and it took me years to say so.", "A law to protect {g} from violence passed today.",
    "The report says {g} face more harassment at work.",
    "{g} were murdered in the war, and we mourn them.", "I will always stand up for {g}.",
    "I welcome {g} to our town.", "Thank you to all the {g} who helped.", "I fucking love {g}.",
    "{g} are so damn {kind}, it's unreal.", "holy shit, {g} can cook",
    "hell yes, {g} are {kind}!", "My {a} friends are fucking amazing.", "{good} {g}",
    "{good} every {a} person you meet", "We {good} {o} when we can.", "I don't hate {g}.",
    "I would never hurt {o}.", "{g} are not {cruel}.", "No, {g} are not {cruel}.",
    "{g} are neither {cruel} nor stupid.", "I have never met {g} who were {cruel}.",
    "It's not true that {g} can't be trusted.", "There is nothing wrong with {g}.",
    "I'd never say that {g} are {cruel}.", "{g} aren't a threat to anybody.",
    "We must stop people from killing {g}.", "Nobody should be told that {g} are {cruel}.",
    "{g} have no reason to be ashamed.", "Without {g} this city would be poorer.",
    "They called {g} {cruel}, and that is racist nonsense.",
    "Whoever writes that {g} are {cruel} should apologise.",
    "“{g} are {cruel}” is the kind of lie that gets people hurt.",
    "My teacher was fired for saying “I despise {g}”.", "Please stop saying {g} are {cruel}.",
    "Anyone who says {g} should be locked up has no heart.",
    "A man who shouted “kill {g}” was arrested.",
    "Comments such as “get rid of {g}” are banned here.",
    "No one deserves to hear “{g} are {cruel}”.",
]  # fmt: skip
_QUOTED = 8  # the last so many of _BENIGN repeat a cruel sentence in order to reject it

_PERSONS = (
    "you|he|she|my landlord|that referee|this senator|your brother|the new guy|Kevin|the host"
)
_INSULTS = [
    "{p} is such an idiot.", "{p} is a complete moron.", "{p} is a fucking liar.",
    "{p} can go to hell.", "Shut up, you clown.", "you are a pathetic loser", "you're {cruel}",
    "{p} is a worthless piece of shit.", "I hate you, you asshole.", "go die in a fire",
    "What a dumb bitch {p} is.", "{p} makes me sick.", "I want to punch {p} in the face.",
    "I will find you and hurt you.", "Kill yourself.", "nobody likes you, you ugly fool",
    "{one} is {cruel}.", "{one} is a {cruel1} person.",
]  # fmt: skip
_THINGS = """this phone|the weather|mondays|traffic|pineapple on pizza|that film|the new update|
cheap wine|cold coffee|spam mail|the printer|my old car|mosquitoes|these shoes|the food here|
wasps|winter|this playlist|the final season|slow internet|dust|homework|the budget|bad jokes"""
_ABOUT_THINGS = [
    "I hate {t}.", "{t} is garbage.", "{t} makes me sick.", "God I loathe {t}.",
    "{t} is disgusting.", "I can't stand {t}.", "to hell with {t}", "{t} should be banned.",
    "I will destroy {t}.", "There is nothing good about {t}.", "{t} is a plague.",
    "{t} is useless.", "kill {t} with fire", "{t} is the worst thing ever.", "I despise {t}.",
    "get rid of {t}",
]  # fmt: skip
_SWEARING = [
    "holy shit that was a good game", "what the fuck just happened", "damn, I'm tired",
    "this is fucking brilliant", "I'm having a shit day", "fuck yes, we won!",
    "{t} is fucking great", "{t} is such bullshit", "fuck {t}", "shit, I forgot my keys",
    "I fucked up the exam", "bloody hell, it's cold", "that was badass",
    "who the hell designed {t}?", "oh fuck me, rain again",
]  # fmt: skip
_NAMES = "Anna|James|Fatima|Wei|Carlos|Maria|Tom|Aisha|Olga|Raj|Keisha|Liam|Noor|Peter|Chloe|Ahmed"


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str
    toxicity: float
    identity_attack: float
    frame: str  # a frame is in training or in validation, never in both


def _cells(text: str) -> list[str]:
    return [cell for cell in text.replace("\n", "").split("|") if cell]


GROUPS = [tuple(line.split("|")) for line in _GROUPS.strip().splitlines()]


def sentences(n: int, seed: int) -> list[Sentence]:
    """`n` distinct ones: 40 % cruel to a group, 40 % not, the rest of persons and things."""
    rng, made = random.Random(seed), dict[str, Sentence]()
    # Targets are ours: what Perspective gives to such texts, in coarse steps.
    kinds = [
        (0.40, _HATEFUL, 0.85, 0.95),
        (0.32, _BENIGN[:-_QUOTED], 0.07, 0.03),
        (0.08, _BENIGN[-_QUOTED:], 0.25, 0.10),
        (0.08, _INSULTS, 0.80, 0.05),
        (0.07, _ABOUT_THINGS, 0.20, 0.02),
        (0.05, _SWEARING, 0.55, 0.02),
    ]
    while len(made) < n:
        _, frames, toxicity, attack = rng.choices(kinds, [kind[0] for kind in kinds])[0]
        frame = rng.choice(frames)
        text = _filled(frame, rng)
        if text is not None:
            made.setdefault(text, Sentence(text, toxicity, attack, frame))
    return list(made.values())


def _filled(frame: str, rng: random.Random) -> str | None:
    many, one, adjective = rng.choice(GROUPS)
    if "{a}" in frame and not adjective:
        return None
    cruel = [word for word in _cells(_CRUEL) if "{cruel1}" not in frame or " " not in word]
    kind = [word for word in _cells(_KIND) if "{kind1}" not in frame or " " not in word]
    text = frame.format(
        g=many, o=one, a=adjective, cruel=(bad := rng.choice(cruel)), cruel1=bad,
        kind=(good := rng.choice(kind)), kind1=good, plain=rng.choice(_cells(_PLAIN)),
        harm=rng.choice(_cells(_HARM)), good=rng.choice(_cells(_HELP)),
        p=rng.choice(_cells(_PERSONS)), t=rng.choice(_cells(_THINGS)),
        one=rng.choice(_cells(_NAMES)),
    )  # fmt: skip
    text = text.replace("you is", "you are").replace("a idiot", "an idiot")
    return text[0].upper() + text[1:] if rng.random() < 0.5 else text


def _any_of(names: set[str]) -> re.Pattern[str]:
    longest_first = "|".join(sorted(names - {""}, key=len, reverse=True))
    return re.compile(rf"\b(?:{longest_first})\b", re.IGNORECASE)


_NAMED = _any_of({many for many, _, _ in GROUPS})
_NAMED_AT_ALL = _any_of({name for group in GROUPS for name in group})


def with_another_group(text: str, rng: random.Random) -> str | None:
    """The same said of another group, where the text names exactly one."""
    if len(set(hit.lower() for hit in _NAMED.findall(text))) != 1:
        return None
    return _NAMED.sub(rng.choice(GROUPS)[0].lower(), text)


_LEET = str.maketrans("aeiost", "431057")


def misspelt(text: str, rng: random.Random) -> str:
    """One word changed the way people dodge filters, or mistype."""
    words = text.split(" ")
    at = rng.choice([i for i, word in enumerate(words) if len(word) > 3] or [0])
    word = words[at]
    cut = rng.randrange(1, len(word) - 1) if len(word) > 2 else 0
    ways = [
        word.translate(_LEET),
        word[:cut] + word[cut + 1 :],
        word[:cut] + word[cut : cut + 2][::-1] + word[cut + 2 :],
        " ".join(word),
        word[:cut] + "*" + word[cut + 1 :],
        word[:cut] + word[cut] * 3 + word[cut + 1 :],
    ]
    words[at] = rng.choice(ways) if cut else word
    if rng.random() < 0.15 and at + 1 < len(words):
        words[at : at + 2] = ["".join(words[at : at + 2])]
    return " ".join(words)


def skeleton(text: str) -> str:
    """What is left without the names of groups, capitals and points: two wordings of one frame."""
    text = re.sub(r"[^a-z ]", "", _NAMED_AT_ALL.sub("GROUP", text).lower())
    return " ".join(text.replace("group people", "group").split())
