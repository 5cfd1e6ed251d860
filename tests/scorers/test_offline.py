"""The scorer that ships with the package: what it promises, and its figures where the data is."""

import hashlib
import json
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import rankdata

from evenhand.scorers import Scores, Unscored, offline
from evenhand.scorers.offline import OfflineScorer
from evenhand.scorers.offline.network import (
    Network,
    NumpyLayers,
    PairTerm,
    ScorerWeights,
    WordPiece,
    features,
    read_weights,
)
from evenhand.scorers.offline.onnx_layers import OnnxLayers
from scripts.offline_scorer.packing import packed, write

FOLDER = Path(offline.__file__).parent


@pytest.fixture(scope="module")
def scorer() -> OfflineScorer:
    return OfflineScorer()


def toxicity(scorer: OfflineScorer, *texts: str) -> list[float]:
    found = scorer.score_now(texts)
    return [one.toxicity for one in found if isinstance(one, Scores)]


def test_an_insult_scores_above_a_greeting(scorer: OfflineScorer) -> None:
    insult, greeting = toxicity(scorer, "You are a fucking idiot.", "Good morning, how are you?")
    assert insult > 0.7
    assert greeting < 0.4


def test_a_group_is_no_insult_and_contempt_for_it_is_one(scorer: OfflineScorer) -> None:
    named, despised = toxicity(
        scorer, "My sister is a lesbian and a surgeon.", "Lesbians are filthy animals."
    )
    assert named < 0.4
    assert despised > 0.5


async def test_a_text_scores_the_same_alone_and_in_company(scorer: OfflineScorer) -> None:
    text = "What a pathetic excuse for a team."
    alone = toxicity(scorer, text)[0]
    crowd = await scorer.score([text, "Hi.", "A longer sentence about the weather " * 9, text])
    assert [one.toxicity for one in crowd if isinstance(one, Scores)][::3] == pytest.approx(
        [alone, alone], abs=2e-4
    )


@pytest.mark.parametrize("text", ["", "   \n", "\u200b\u200d", "你好世界"])
def test_a_text_without_words_is_missing_with_a_reason_and_not_harmless(
    scorer: OfflineScorer, text: str
) -> None:
    found = scorer.score_now([text, "You idiot."])
    assert found[0] == Unscored("no_words", "no words to score")
    assert isinstance(found[1], Scores)


def test_no_texts_give_no_scores(scorer: OfflineScorer) -> None:
    assert scorer.score_now([]) == []


@pytest.mark.parametrize(
    "disguised",
    [
        "you are a fucking іdіоt",  # Cyrillic letters
        "you are a fuc\u200bking id\u200biot",  # zero-width spaces
        "ｙｏｕ ａｒｅ ａ ｆｕｃｋｉｎｇ ｉｄｉｏｔ",  # full-width letters
        "you are a fúcking ïdiot",
        "you are a fucking 1d10t",
        "you are a fucking i d i o t",
        "YOU ARE A FUCKING IDIOT",
    ],
)
def test_a_disguise_in_letters_changes_nothing(scorer: OfflineScorer, disguised: str) -> None:
    plain, hidden = toxicity(scorer, "you are a fucking idiot", disguised)
    assert hidden == pytest.approx(plain, abs=2e-4)


def scores_by(layers: type[NumpyLayers] | type[OnnxLayers], texts: list[str]) -> Any:
    """Every attribute of each text, not rounded."""
    scorer = OfflineScorer()
    weights = scorer._model.weights
    scorer._model.network = Network(weights, layers(weights))
    logits = [scorer._logits(scorer.windows(text)).max(0) for text in texts]
    return np.array(
        [
            [np.interp(one, *knots) for one, knots in zip(row, scorer._knots, strict=True)]
            for row in logits
        ]
    )


@pytest.mark.parametrize("layers", [NumpyLayers, OnnxLayers])
def test_the_scores_are_those_that_were_recorded_whatever_computes_them(
    layers: type[NumpyLayers] | type[OnnxLayers],
) -> None:
    rows = json.loads(Path(__file__).with_name("offline_scores.json").read_text(encoding="utf-8"))
    found = scores_by(layers, [row["text"] for row in rows])
    assert np.abs(found - [row["scores"] for row in rows]).max() < 1e-6


def test_where_onnx_runtime_is_installed_it_computes_the_layers(scorer: OfflineScorer) -> None:
    assert isinstance(scorer._model.network.means, OnnxLayers)


def test_a_scorer_that_was_used_goes_to_another_process_without_its_network(
    scorer: OfflineScorer,
) -> None:
    before = scorer.score_now(["You idiot."])
    sent = pickle.dumps(scorer)
    assert len(sent) < 10_000
    assert pickle.loads(sent).score_now(["You idiot."]) == before


def test_a_long_text_scores_as_its_worst_stretch(scorer: OfflineScorer) -> None:
    harmless = "The committee met on Tuesday and read the minutes of the last meeting. " * 40
    calm, hidden = toxicity(scorer, harmless, harmless + "You worthless fucking idiot. " * 12)
    assert calm < 0.2
    assert hidden > 0.6


def test_every_attribute_is_between_0_and_1(scorer: OfflineScorer) -> None:
    found = scorer.score_now(["kill them all", "a", "!!!", "fuck " * 500, "tea"])
    values = [v for one in found if isinstance(one, Scores) for v in one.values.values()]
    assert scorer.attributes[0] == "toxicity"
    assert len(values) == 5 * len(scorer.attributes)
    assert all(0 <= value <= 1 for value in values)


def test_the_name_changes_with_the_weights(scorer: OfflineScorer, tmp_path: Path) -> None:
    blob = (FOLDER / "weights.safetensors").read_bytes()
    assert scorer.name == f"offline@1+{hashlib.sha256(blob).hexdigest()[:12]}"
    (tmp_path / "other").write_bytes(blob[:-1] + bytes([blob[-1] ^ 1]))
    assert OfflineScorer(tmp_path / "other").name != scorer.name


def test_the_card_names_the_weights_that_ship(scorer: OfflineScorer) -> None:
    assert scorer.name in (FOLDER / "card.md").read_text(encoding="utf-8")


def test_nothing_that_ships_can_run_code_when_read() -> None:
    ships = {path.suffix for path in FOLDER.iterdir() if path.is_file()}
    assert ships <= {".py", ".md", ".safetensors", ".onnx"}
    source = "".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py"))
    assert not any(word in source for word in ("import pickle", "allow_pickle", "joblib", "eval("))
    assert (FOLDER / "weights.safetensors").stat().st_size < 10_000_000


def test_weights_come_back_as_they_went_in(tmp_path: Path) -> None:
    array = np.array([[0.5, -1.0, 0.25]], dtype=np.float32)
    write(tmp_path / "w", {"a": array, "b": np.array([7], dtype=np.int8)}, {"of": "a test"})
    found = read_weights(tmp_path / "w")
    assert found.metadata == {"of": "a test"}
    assert found.arrays["a"].tolist() == [[0.5, -1.0, 0.25]]
    assert found.arrays["b"].tolist() == [7]


def test_four_bits_keep_multiples_of_the_scale_exactly() -> None:
    # 32 values from -8 to 7 times a power of two: the scale is 1/8, which 16 bits hold exactly.
    array = np.array([[(i % 16 - 8) / 8 for i in range(32)]], dtype=np.float32)
    assert np.array_equal(ScorerWeights(packed("x", array, 4), {}, "").floats("x"), array)


def test_pieces_are_the_longest_that_fit() -> None:
    vocabulary = {"[UNK]": 0, "un": 1, "##kind": 2, "##ki": 3, "kind": 4, ".": 5}
    assert WordPiece(vocabulary).pieces("Unkind kind. кind") == [1, 2, 4, 5, 4]
    assert WordPiece(vocabulary).pieces("zzz") == [0]


def test_a_piece_and_each_pair_of_pieces_is_a_feature() -> None:
    # Two pieces and a filler. 1 next to 2: 31337 + 2 * 7919 + 104729 ends in 4, so 3 + 4.
    found, there = features(np.array([[1, 2, 0]]), words=3, slots=10)
    assert found[0, [0, 1, 3]].tolist() == [1, 2, 7]
    assert there.tolist() == [[1, 1, 0, 1, 0, 0]]


def test_the_linear_term_adds_what_is_there_and_a_long_text_weighs_no_more() -> None:
    table = np.zeros((1, 13), dtype=np.float32)
    table[0, [1, 2, 7]] = 1, 2, 3
    table[0, 0] = 99  # the filler counts for nothing
    term = PairTerm(ScorerWeights({"pairs": table}, {}, ""), words=3)
    assert term(np.array([[1, 2, 0]])) == pytest.approx(np.array([[6 / 3**0.5]]))


def test_300_short_texts_a_second(scorer: OfflineScorer) -> None:
    """In CPU time of this process, since a test machine is seldom idle: two cores give twice it."""
    texts = [f"This is short text number {i} about nothing in particular." for i in range(600)]
    scorer.score_now(texts[:50])
    rates = []
    for _ in range(3):
        began = time.process_time()
        scorer.score_now(texts)
        rates.append(len(texts) / (time.process_time() - began))
    assert max(rates) * 2 >= 300


def area(scores: list[float], toxic: list[bool]) -> float:
    ranks, hits = rankdata(scores), np.array(toxic)
    n = int(hits.sum())
    return float((ranks[hits].sum() - n * (n + 1) / 2) / (n * (len(toxic) - n)))


def test_the_area_of_a_perfect_an_opposite_and_a_blind_scorer() -> None:
    assert area([0.1, 0.9], [False, True]) == 1.0
    assert area([0.9, 0.1], [False, True]) == 0.0
    assert area([0.5, 0.5], [False, True]) == 0.5


def rows(path: Path) -> list[dict[str, Any]]:
    import polars  # noqa: PLC0415

    return polars.read_csv(path, infer_schema=False).to_dicts()


def attribute(scorer: OfflineScorer, name: str, texts: list[str]) -> list[float]:
    found = [one for one in scorer.score_now(texts) if isinstance(one, Scores)]
    assert len(found) == len(texts)
    return [one.values[name] for one in found]


@pytest.mark.slow
def test_hatecheck_is_as_the_card_says(scorer: OfflineScorer, data_folder: Path) -> None:
    cases = rows(data_folder / "hatecheck/test_suite_cases.csv")
    texts = [case["test_case"] for case in cases]
    hateful = [case["label_gold"] == "hateful" for case in cases]
    assert len(texts) == 3728
    assert area(attribute(scorer, "hate", texts), hateful) >= 0.75
    # Toxicity is not hate: swearing and insults to a person are toxic and not hateful.
    by_toxicity = area(attribute(scorer, "toxicity", texts), hateful)
    assert by_toxicity == pytest.approx(0.72, abs=0.01)


@pytest.mark.slow
def test_the_identity_templates_are_as_the_card_says(
    scorer: OfflineScorer, data_folder: Path
) -> None:
    """By the output that does HateCheck. Every 20th of the 106,804: the whole takes minutes."""
    jigsaw = data_folder / "jigsaw_unintended_bias"
    names = ("en_sentence_templates", "intersectional_madlibs")
    phrases = [row for name in names for row in rows(jigsaw / f"{name}.csv.gz")][::20]
    texts = [row["phrase"] for row in phrases]
    toxic = [row["toxicity"] == "toxic" for row in phrases]
    assert area(attribute(scorer, "hate", texts), toxic) >= 0.90
    by_toxicity = area(attribute(scorer, "toxicity", texts), toxic)
    assert by_toxicity == pytest.approx(1.000, abs=0.01)
