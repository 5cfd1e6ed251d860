"""Contexts with planted personal data: names of many origins in many positions, addresses, numbers.

Most of the names are in no list of ours, so that the rule is tested and not the list.
"""

import random
from dataclasses import dataclass

GIVEN = """
Aaliyah Abebe Adebayo Aiko Ailín Ananya Anneliese Aoife Astrid Ayşe Babajide Baptiste Björn
Blessing Bronisława Caoimhe Chidi Chiamaka Cormac Dagný Dariusz Delroy Devanté Dmitro Eilidh Eleni
Emre Esra Farhad Françoise Gintaras Gülşen Hyun Ikenna Ilse Ines Iñaki Jadranka Jermaine Jiří
Joaquín Kamala Katsuro Keandre Krzysztof Laxmi Léa Lindiwe Łukasz Mahesh Małgorzata Marit Matteo
Minh Nadezhda Ngozi Niamh Nils Nkechi Oisín Oluwaseun Øyvind Parveen Phuong Quynh Rashad Renée
Rigoberto Rohan Rutger Sadio Saoirse Shreya Siobhán Søren Svein Takeshi Thandiwe Tomasz Tuğba
Uchenna Ümit Vigdís Wanjiru Wolfgang Xiomara Ximena Yannick Yiannis Zbigniew Zeynep Živa Hunter
Chase Brooke Summer Jamal Maria John Fatima Priya
""".split()

FAMILY = """
Abramovich Achebe Adeyemi Afolabi Bajwa Bhattacharya Çelik Chaudhry Chukwu Cisneros Dąbrowski
Dlamini Eriksson Fernández Fitzgerald Gonçalves Grønlund Gutiérrez Håkansson Hernández Ionescu
Jóhannsson Juárez Kowalczyk Krishnamurthy Lundqvist Mbeki McAllister MacGregor Müller Mwangi
Nakamura Ndlovu Novák Núñez O’Brien O'Connor Okonkwo Ólafsson Papadopoulos Petrović Quispe
Rasmussen Reszke Sánchez Schröder Szczepański Sørensen Takahashi Tchaikovsky Tran Ulyanov Vasquez
Wójcik Yamamoto Yıldız Zamora Žižek Baker Carpenter Long Cook Bishop Stone Woods
""".split()

GROUPS = """
Muslim Jewish Nigerian Mexican African Asian Black Hispanic Catholic Arab Chinese Indian Roma
Hindu transgender gay elderly deaf
""".split()

_PLACES = (
    "{full} and a friend waited at the station.",
    "At noon {full} came in, and {given} sat down.",
    "It was {given}'s idea, and {family}’s house was near.",
    "{GIVEN} WAS LATE. Then {FAMILY} LEFT.",
    "The teacher asked {given}-{other} about it; {given} said nothing.",
    "Dr. {family} and Mrs. {family} saw {given}.",
    "“{given},” said the clerk, “and you, {other} van der {family}?”",
    "Neither ({given}) nor [{family}] answered!",
    "Who was it? {given}. Who else? {other}.",
    "They called {given}/{other}, {given}&{other}: no one came.",
)
_ADDRESSES = (
    "Write to {mail}.",
    "The address is <{mail}>, or @{user} on the net.",
    "Mail: {user} at {site} dot org",
    "Mail: {user}[at]{site}[dot]org",
    "See https://www.{site}.org/~{user}/page_{user}.",
    "See {site}.org/{user} for more.",
)
_PHONES = (
    "+1 (555) {a}-{b}",
    "555-{a}-{b}",
    "555.{a}.{b}",
    "0049 30 {a} {b}",
    "+91-{a}{b}0",
    "tel:{a}{b}",
    "５５５-{a}",
    "٠٥٥{a}",
    "five five {a} nine",
    "({a}) {b} ext. 12",
)


@dataclass(frozen=True)
class Planted:
    text: str
    group: str
    private: tuple[str, ...]  # pieces that must not leave


def contexts(count: int, seed: int = 4) -> list[Planted]:
    rng = random.Random(seed)
    return [_context(rng) for _ in range(count)]


def _context(rng: random.Random) -> Planted:
    given, other = rng.sample(GIVEN, 2)
    family, group = rng.choice(FAMILY), rng.choice(GROUPS)
    site = rng.choice(("zolvex", "quarnet", "brimdale", "pellomark"))
    user = rng.choice(("", "kv", "the_", "my.")) + given.lower().replace("ı", "i")
    a, b = str(rng.randint(100, 999)), str(rng.randint(1000, 9999))
    people = rng.choice(_PLACES).format(
        full=f"{given} {family}",
        given=given,
        GIVEN=given.upper(),
        other=other,
        family=family,
        FAMILY=family.upper(),
    )
    address = rng.choice(_ADDRESSES).format(user=user, site=site, mail=f"{user}@{site}.org")
    phone = rng.choice(_PHONES).format(a=a, b=b)
    text = f"A {group} woman moved into the new house. {people} {address} Call {phone} today."
    planted = (given, other, family, site, a, b)
    return Planted(text, group, tuple(p for p in planted if p in text or p.upper() in text))
