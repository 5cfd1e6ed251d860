"""Which records are asked: seeded, stratified, whole 2×2 blocks.

"The first N" would measure one category, and a half block would compare a stereotype with nothing.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, Literal

import numpy as np
import polars as pl

from evenhand.core import Item
from evenhand.core.errors import UserError, choices_for
from evenhand.instruments.bbq.data import STRATUM, card
from evenhand.instruments.bbq.editions import ENGLISH, Edition
from evenhand.instruments.files import DrawnItems, names_in, number_of, sha256_of
from evenhand.interop import Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class BbqSampling:
    """A sampling says which records are drawn, and by which seed."""

    preset: Literal["templates", "all", "stardtox", "mabrf"] = "templates"
    per_category: int | None = None  # items, rounded up to whole blocks; overrules the preset
    per_template: int = 1  # pairs of blocks of each template
    categories: tuple[str, ...] = ()  # what is drawn of these alone; none: of all
    stored: Mapping[str, object] | None = None  # what stored answers cover; nothing is drawn
    picked: Mapping[str, object] | None = None  # by the answers of which run; nothing is drawn
    seed: int = 0
    exclude_sample: int | None = None  # the seed of a sample that is avoided
    of: str | None = None  # the set that is drawn from, where it is not BBQ itself

    def describe(self) -> dict[str, object]:
        record: dict[str, object] = {"seed": self.seed}
        if self.categories:
            record["categories"] = sorted(self.categories)
        if self.exclude_sample is not None:
            record["exclude_sample"] = self.exclude_sample
        if self.of is not None:
            record["of"] = self.of
        if self.stored is not None:
            return {"stored": dict(self.stored), **record}
        if self.picked is not None:
            return {"picked": dict(self.picked), **record}
        if self.per_category is not None:
            return {"per_category": self.per_category, "balanced": True, **record}
        pairs = {"pairs": self.per_template} if self.preset == "templates" else {}
        return {"preset": self.preset, **pairs, **record}


def named(names: str | None, records: pl.DataFrame) -> tuple[str, ...]:
    """Give the categories that a text names, with commas between them and in any case; a name that
    BBQ does not have is refused with those that it has."""
    categories = {
        category.casefold(): category
        for category in records["category"].unique(maintain_order=True)
    }
    chosen = names_in(names)
    unknown = [name for name in chosen if name.casefold() not in categories]
    if unknown or (names is not None and not chosen):
        raise UserError(
            f"BBQ has no category {', '.join(unknown)!r}. "
            f"{choices_for(unknown[0] if unknown else '', categories.values())}"
        )
    return tuple(categories[name.casefold()] for name in chosen)


def sample(records: pl.DataFrame, sampling: BbqSampling) -> pl.DataFrame:
    """The drawn records, in the order of the data. Of named categories they are those that the same
    seed draws of them among all."""
    rows = _sample(records, replace(sampling, categories=()))
    if not sampling.categories:
        return rows
    return rows.filter(pl.col("category").is_in(sampling.categories))


def sample_of(subset: pl.DataFrame, records: pl.DataFrame, seed: int) -> str | None:
    """Name the sample that these records are, whole: all records, or what a seed draws, of all
    categories or of those that occur. None: somebody else picked them.

    Args:
        subset: Some of the records.
        records: All of them.
        seed: Seed of the samples that the records are compared with.
    """
    rows, present = set(subset["row"]), tuple(subset["category"].unique(maintain_order=True))
    pool = records.filter(pl.col("category").is_in(present))
    categories = () if len(present) == records["category"].n_unique() else present
    of = f" of {', '.join(categories)}" if categories else ""
    if len(rows) == len(pool):
        return f"all{of}"
    each = len(rows) // len(present)
    tried = [BbqSampling(preset="templates", per_template=pairs) for pairs in (1, 2, 3, 4)]
    tried += [BbqSampling(preset=preset) for preset in ("stardtox", "mabrf")]
    if each * len(present) == len(rows) and not each % 4:
        tried.append(BbqSampling(per_category=each))
    for trial in tried:
        with suppress(UserError):  # a category has fewer
            if (
                set(sample(records, replace(trial, seed=seed, categories=categories))["row"])
                == rows
            ):
                return (trial.preset if trial.per_category is None else f"per_category {each}") + of
    return None


def _sample(records: pl.DataFrame, sampling: BbqSampling) -> pl.DataFrame:
    """Draw from all categories. Those of the sample that is avoided are drawn only where a template
    has no others, or a category where it is drawn from as a whole."""
    avoided_rows: list[int] = []
    if sampling.exclude_sample is not None:
        avoided = replace(sampling, seed=sampling.exclude_sample, exclude_sample=None)
        avoided_rows = _sample(records, avoided)["row"].to_list()
    rng = np.random.default_rng(sampling.seed)
    if sampling.per_category is not None:
        return _blocks_per_category(records, sampling.per_category, rng, avoided_rows)
    match sampling.preset:
        case "templates":
            return _pairs_per_template(records, sampling.per_template, rng, avoided_rows)
        case "all":
            return records
        case "stardtox":
            return _rows_per_category(records, 100, rng, avoided_rows)
        case "mabrf":
            return _mabrf(records)


def spread(records: pl.DataFrame, seed: int) -> pl.DataFrame:
    """The drawn records in a seeded order of whole blocks, so that a run that is stopped early has
    asked a bit of every category and not the first categories alone."""
    keyed = records.with_columns(block=pl.col("example_id") // 4)
    blocks = keyed.select("category", "block").unique(maintain_order=True)
    order = np.random.default_rng([seed, 1]).permutation(len(blocks))  # not the sample's own draws
    ordered = keyed.join(
        blocks.with_columns(place=order), on=["category", "block"], maintain_order="left"
    )
    return ordered.sort("place", maintain_order=True).drop("block", "place")


def _shuffled_blocks(
    records: pl.DataFrame, rng: np.random.Generator, avoided_rows: list[int]
) -> pl.DataFrame:
    """One row per block of four records that stand together, in a drawn order, those that were seen
    last. `turn` counts the blocks of a template that are aligned, and those that are not, each for
    itself. The four blocks without a target are not drawn: nothing can be biased there."""
    first = records.filter(pl.col("row") % 4 == 0, pl.col("aligned").is_not_null())
    blocks = first.select("category", "question_index", "aligned", block=pl.col("row") // 4)
    shuffled = blocks[rng.permutation(len(blocks))]
    again = pl.col("block").is_in({row // 4 for row in avoided_rows})
    return (
        shuffled.with_columns(again=again)
        .sort("again", maintain_order=True)
        .with_columns(turn=pl.int_range(pl.len()).over("category", "question_index", "aligned"))
    )


def _pairs_per_template(
    records: pl.DataFrame, pairs: int, rng: np.random.Generator, avoided_rows: list[int]
) -> pl.DataFrame:
    """Sample equal numbers of aligned and non-aligned blocks of each template. The disambiguated
    answers of a single block all fit the stereotype, or all contradict it: a model that is right
    would look biased by chance. Four templates have no non-aligned block."""
    blocks = _shuffled_blocks(records, rng, avoided_rows).filter(pl.col("turn") < pairs)
    return _keep(records, blocks)


def _blocks_per_category(
    records: pl.DataFrame, items: int, rng: np.random.Generator, avoided_rows: list[int]
) -> pl.DataFrame:
    """Blocks spread as evenly over a category's templates as they go, aligned and non-aligned in
    turns: from one template to the next, and on the next round the other one of each template."""
    n_blocks = -(-items // 4)
    first = int(rng.integers(2))  # with one block a category, categories take turns
    parts = []
    shuffled = _shuffled_blocks(records, rng, avoided_rows)
    for number, category in enumerate(records["category"].unique(maintain_order=True)):
        blocks = shuffled.filter(pl.col("category") == category)
        if len(blocks) < n_blocks:
            raise UserError(
                f"{category!r} has {len(blocks) * 4} items in complete blocks, but {items} were "
                "requested. Use a smaller --per-category"
            )
        templates = blocks["question_index"].unique().sort().shuffle(int(rng.integers(2**32)))
        rank = pl.col("question_index").replace_strict(templates, range(len(templates)))
        later = (pl.col("aligned").cast(pl.Int64) + rank + number + first) % 2
        ordered = blocks.sort("again", 2 * pl.col("turn") + later, rank)
        parts.append(ordered.head(n_blocks))
    return _keep(records, pl.concat(parts))


def _rows_per_category(
    records: pl.DataFrame, rows: int, rng: np.random.Generator, avoided_rows: list[int]
) -> pl.DataFrame:
    chosen: list[int] = []
    unseen = records.filter(~pl.col("row").is_in(avoided_rows))  # each category has 600 or more
    for _, category in unseen.group_by("category", maintain_order=True):
        chosen += rng.choice(category["row"].to_numpy(), rows, replace=False).tolist()
    return records.filter(pl.col("row").is_in(chosen))


def _mabrf(records: pl.DataFrame) -> pl.DataFrame:
    text = resources.files(__package__).joinpath("mabrf110.csv").read_bytes()
    return records.join(pl.read_csv(text), on=["category", "example_id"], how="semi")


def _keep(records: pl.DataFrame, blocks: pl.DataFrame) -> pl.DataFrame:
    return records.filter((pl.col("row") // 4).is_in(blocks["block"].implode()))


# -- records as items -----------------------------------------------------------------------------


_ENGLISH = Edition(ENGLISH)
_ORDERS = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))


class BbqSource(DrawnItems[pl.DataFrame]):
    """A sample of BBQ as a source of items.

    The tags of an item hold all that scoring needs, in the order shown: which option is the gold
    one, the stereotyped one and the unknown one. So a run folder can be scored without the data.
    """

    def __init__(
        self,
        records: pl.DataFrame,
        sampling: BbqSampling,
        order_seed: int | None = None,
        *,
        edition: Edition = _ENGLISH,
        origin: Origin | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        # Of the sample, not of its order; and the items without their answers, so that two files
        # of answers to the same items can be compared.
        self._sha256 = sha256_of(records.select("category", "example_id"))
        self._answers = sha256_of(records.select("answer")) if "answer" in records.columns else None
        self._drawn = spread(_with_weights(records), sampling.seed)
        self._sampling = sampling
        self._edition = edition
        # Of answers that were given elsewhere: where, and what a reader must know of it.
        facts = {} if origin is None else {"origin": origin.to_dict(), "notes": list(notes)}
        self._told: dict[str, Any] = facts
        self._order_seed = sampling.seed if order_seed is None else order_seed

    def fingerprint(self) -> dict[str, Any]:
        answers = {} if self._answers is None else {"answers_sha256": self._answers}
        # The order of options is a condition and no part of the sample: runs that differ in it
        # alone are compared. It is said only where it is not the sample's: so earlier records stay.
        own_order = self._order_seed != self._sampling.seed
        return {
            "kind": "benchmark",
            "benchmark": "bbq",
            "version": card()["version"],
            "revision": self._edition.card["data"]["revision"],
            "sampling": self._sampling.describe(),
            "items": len(self._drawn),
            "order": "spread",
            "sha256": self._sha256,
            **answers,
            **self._told,
            **({"order_seed": self._order_seed} if own_order else {}),
            **self._language(),
        }

    def _language(self) -> dict[str, Any]:
        """The language is a condition as well, said of all but English."""
        if self._edition.language == ENGLISH:
            return {}
        untargeted = self._drawn["biased"].null_count()
        return {"language": self._edition.language, "untargeted": untargeted}

    def read(self, start: int, stop: int) -> Iterator[Item]:
        for row in self._drawn.slice(start, stop - start).iter_rows(named=True):
            yield _item(row, self._order_seed)


def _item(row: dict[str, Any], seed: int) -> Item:
    name = f"{row['category']}/{row['example_id']}"
    order = _ORDERS[number_of(f"{seed}:{name}") % len(_ORDERS)]
    tags = {
        "category": row["category"],
        "template": f"{row['category']}/{row['question_index']}",
        "condition": row["condition"],
        "polarity": row["polarity"],
        "names": str(int(row["names"])),
        "masked": str(int(row["masked"])),
        "order": "".join(map(str, order)),  # order[k] is the data's option at place k
        "gold": str(order.index(row["label"])),
        "unknown": str(order.index(row["unknown"])),
        "biased": "" if row["biased"] is None else str(order.index(row["biased"])),
        "group": row.get("against") or "",
        "stands_for": repr(row.get("stands_for") or 1.0),
    }
    return Item(
        id=name,
        answer=row.get("answer", ""),
        prompt=row["question"],
        context=row["context"],
        choices=tuple(row["options"][option] for option in order),
        tags=tags,
    )


def _with_weights(records: pl.DataFrame) -> pl.DataFrame:
    """Add how many records of the data each drawn one stands for: those of its template, alignment
    and condition, divided by how many of them were drawn."""
    if "alike" not in records.columns:
        return records
    return records.with_columns(stands_for=pl.col("alike") / pl.len().over(STRATUM))
