"""The order of options has a seed of its own: it changes what is shown and not what is asked."""

import polars as pl

from evenhand.instruments.bbq.sample import BbqSampling, BbqSource, sample

SAMPLING = BbqSampling(per_category=4, seed=3)


def test_another_order_seed_shows_the_same_items_with_their_options_in_another_order(
    records: pl.DataFrame,
) -> None:
    drawn = sample(records, SAMPLING)
    usual, other = BbqSource(drawn, SAMPLING), BbqSource(drawn, SAMPLING, 7)
    pairs = list(zip(usual.read(0, len(usual)), other.read(0, len(other)), strict=True))
    moved = 0
    for one, two in pairs:
        assert (one.id, one.prompt, one.context) == (two.id, two.prompt, two.context)
        assert sorted(one.choices) == sorted(two.choices)
        for tag in ("gold", "unknown"):
            assert one.choices[int(one.tags[tag])] == two.choices[int(two.tags[tag])]
        moved += one.choices != two.choices
    assert moved > len(pairs) / 2
    mine, theirs = usual.fingerprint(), other.fingerprint()
    assert theirs.pop("order_seed") == 7
    assert mine == theirs


def test_without_one_the_order_is_drawn_by_the_sample_seed_as_ever(records: pl.DataFrame) -> None:
    drawn = sample(records, SAMPLING)
    usual, same = BbqSource(drawn, SAMPLING), BbqSource(drawn, SAMPLING, SAMPLING.seed)
    assert usual.fingerprint() == same.fingerprint()
    assert "order_seed" not in usual.fingerprint()
    assert list(usual.read(0, 44)) == list(same.read(0, 44))
