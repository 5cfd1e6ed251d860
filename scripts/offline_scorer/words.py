"""The words of our own sentences: groups, persons, things and what is said of them."""

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

CRUEL = """disgusting|filthy|worthless|inferior|subhuman|repulsive|vile|stupid|lazy|dangerous|
primitive|evil|pathetic|revolting|sick in the head|rotten|a disgrace|garbage|scum|vermin|animals|
parasites|a plague|a cancer on this country|dumb as rocks|thieves and liars|savages|criminals|
perverts|useless|a waste of space|a burden on everyone|mentally deficient|dirty|cockroaches|
an infection|freaks|monsters|beneath us|the worst thing that ever happened here|barbaric|
not fully human|ugly|corrupt|hideous|abominations|trash|leeches|idiots|morons|nasty|horrible|
terrible|awful|gross|shitty|a bunch of losers|nothing but trouble|wicked|unnatural|hateful|bad"""
KIND = """wonderful|kind|brave|generous|creative|funny|hard-working|welcome here|an inspiration|
smart|brilliant|patient|thoughtful|strong|beautiful|proud|loyal|my closest friends|talented|nice|
great|part of this city|worth listening to|equal to everyone else|resilient|warm and open|lovely|
as human as anyone|good neighbours|gifted|the backbone of this team|great company|admirable|good|
fantastic|gentle|polite|excellent cooks|doing great work|a gift to this school|amazing|friendly"""
PLAIN = """here|taxpayers|voters|my neighbours|on the bus|at work today|students|in the next room|
part of the survey|mentioned in chapter two|among the authors|in the choir|parents too|on the jury|
moving to the coast|watching the match|tall|left-handed|from many places|online more than before|
represented on the board|tired after the trip|quiet|late for the meeting|accountants"""

HARM = "hurt|beat up|humiliate|harm|destroy|stab|spit on|torture|bully|exterminate|punish|mock"
HELP = "thank|help|respect|support|hire|visit|invite|applaud|greet|listen to|befriend|feed|teach"
PERSONS = "you|he|she|my landlord|that referee|this senator|your brother|the new guy|Kevin|the host"
THINGS = """this phone|the weather|mondays|traffic|pineapple on pizza|that film|the new update|
cheap wine|cold coffee|spam mail|the printer|my old car|mosquitoes|these shoes|the food here|
wasps|winter|this playlist|the final season|slow internet|dust|homework|the budget|bad jokes"""
NAMES = "Anna|James|Fatima|Wei|Carlos|Maria|Tom|Aisha|Olga|Raj|Keisha|Liam|Noor|Peter|Chloe|Ahmed"
# People by what they do or think: contempt for them is rude, and no hate of a group.
OTHERS = """landlords|bankers|football fans|reporters|politicians|vegans|gamers|lawyers|tourists|
cyclists|influencers|smokers|referees|managers|golfers|critics|billionaires|socialists|liberals|
conservatives|anarchists|hipsters|dog owners|economists|salesmen|bureaucrats|flat-earthers|rappers|
truck drivers|painters|philosophers|hunters"""
OPENERS = """honestly, |in my opinion |let's be real: |I'll say it again: |look, |
as far as I can tell |my view is simple: |everybody knows it: |unpopular opinion: |to be clear, |
I keep thinking that |
lol |just so you know, |after all these years I believe |well, """
CLOSERS = """ Full stop.| That's all I have to say.| What do you think?| Good night.| #truth| lol|
 And I mean it.| Ask anybody.|!!!| ...| I said what I said.| Change my mind.| Have a nice day."""


def cells(text: str) -> list[str]:
    return [cell for cell in text.replace("\n", "").split("|") if cell]


GROUPS = [tuple(line.split("|")) for line in _GROUPS.strip().splitlines()]
