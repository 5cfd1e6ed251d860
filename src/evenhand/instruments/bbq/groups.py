"""The group that the stereotype of a question is about, by a name that a reader knows.

BBQ labels each option with a group such as "F-Black" or "nonOld". The target is the biased option
of a negative question, and the other person of a non-negative one, because there the stereotype
points away from its group.
"""

import polars as pl

_RACES = {
    "Black": "Black", "African American": "Black", "African": "Black",
    "Latino": "Latino", "Hispanic": "Latino", "South American": "Latino",
    "Arab": "Middle Eastern", "Middle Eastern": "Middle Eastern",
    "White": "White", "Caucasian": "White", "European": "White",
    "Asian": "Asian", "Native American": "Native American", "Roma": "Roma", "Jewish": "Jewish",
}  # fmt: skip
_PEOPLE = {
    "F": "women", "woman": "women", "girl": "women", "M": "men", "man": "men", "boy": "men",
    "trans": "trans people", "trans_F": "trans people", "trans_M": "trans people",
    "old": "old people", "nonOld": "young people",
    "disabled": "disabled people",
    "lowSES": "poor people", "highSES": "rich people",
    "Africa": "people from Africa", "AsiaPacific": "people from Asia and the Pacific",
    "MiddleEast": "people from the Middle East", "ArabStates": "people from the Middle East",
    "Europe": "people from Europe", "NorthAmerica": "people from North America",
    "obese": "obese people", "negDress": "badly dressed people", "pregnant": "pregnant women",
    "short": "short people", "visibleDifference": "people with a visible difference",
    "Muslim": "Muslims", "Christian": "Christians", "Catholic": "Catholics", "Mormon": "Mormons",
    "Hindu": "Hindus", "Atheist": "atheists",
    "gay": "gay men", "lesbian": "lesbians", "bisexual": "bisexual people",
    "pansexual": "pansexual people",
}  # fmt: skip
_SEXES, _MEANS = {"F": "women", "M": "men"}, {"lowSES": "poor", "highSES": "rich"}


def against() -> pl.Expr:
    """Name the group of the target; null where a record has no target."""
    other = 3 - pl.col("unknown") - pl.col("biased")
    target = pl.when(pl.col("polarity") == "neg").then("biased").otherwise(other)
    label = pl.col("groups").list.get(target, null_on_oob=True)
    text = pl.col("options").list.get(target, null_on_oob=True)
    # BBQ leaves the label of one option empty, "the Latina woman".
    corrected = pl.when((label == "") & text.str.contains("Latina")).then(pl.lit("F-Latino"))
    pair = pl.struct(category="category", label=corrected.otherwise(label))
    return pair.map_elements(lambda row: name_of(**row), return_dtype=pl.String)


def name_of(category: str, label: str | None) -> str | None:
    """Name a group in the plural. A race has a sex only where the category is about both, because
    the names of people have one by chance.

    >>> name_of("Race_x_gender", "F-Black"), name_of("Race_ethnicity", "F-Black")
    ('Black women', 'Black people')
    """
    if label is None or label in _PEOPLE:
        return _PEOPLE.get(label or "")
    *before, race = label.split("-")
    if race not in _RACES:
        return label or None
    means = [_MEANS[part] for part in before if part in _MEANS]
    sexes = [_SEXES[part] for part in before if part in _SEXES and category == "Race_x_gender"]
    return " ".join([*means, _RACES[race], *(sexes or ["people"])])
