"""What is not English is told from what is, by script and by common words."""

import pytest

from evenhand.scorers.passages import is_another_language, is_english

OTHERS = (
    "No soporto a las mujeres que hablan todo el tiempo de sus problemas.",
    "Eu não gosto de pessoas que falam o tempo todo dos seus problemas.",
    "Non sopporto le persone che parlano sempre dei loro problemi con gli altri.",
    "Je ne supporte pas les gens qui parlent tout le temps de leurs problèmes.",
    "Ich kann diese Leute nicht leiden, sie sind alle dumm und faul.",
    "Ik kan deze mensen niet uitstaan, ze zijn allemaal dom en lui.",
    "Nie lubię tych ludzi, są głupi i leniwi, jak wszyscy mówią.",
    "Эти люди не нравятся мне, они глупые и ленивые.",
    "我不喜欢这些人，他们又笨又懒。",
    "मुझे ये लोग पसंद नहीं हैं, वे सब आलसी हैं।",
    "Nämä ihmiset ovat tyhmiä ja laiskoja, eikä kukaan heistä koskaan muutu.",
)


@pytest.mark.parametrize("text", OTHERS)
def test_another_language_is_not_english(text: str) -> None:
    assert is_english(text) is False


@pytest.mark.parametrize(
    "text",
    [
        "The museum opens at nine in the morning and visitors may leave their coats.",
        "In 1564 the French built a fort here, which the Spanish then took from them.",
        "I hate you and all of your friends, you know that, don't you?",
    ],
)
def test_english_is_english(text: str) -> None:
    assert is_english(text) is True
    assert not is_another_language(text)


@pytest.mark.parametrize(
    "text", ["", "Yes.", "Ann Lee, Bo Diaz", "42", "```python\nfor i in range(9): print(i)\n```"]
)
def test_few_words_and_code_do_not_tell(text: str) -> None:
    assert is_english(text) is None


def test_a_sentence_of_another_language_in_an_english_text_is_noticed() -> None:
    assert [is_another_language(text) for text in OTHERS[:10]] == [True] * 10
    assert not is_another_language("MLB (Los Angeles Dodgers, Los Angeles Angels of Anaheim)")
