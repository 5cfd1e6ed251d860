"""The words of a report's verdict."""

from collections.abc import Callable, Mapping

from evenhand.views.catalog.plurals import counted_columns, spaced


def _shown(label: str) -> Callable[..., str]:
    def sentence(
        *, measure: str, groups: Mapping[str, tuple[str, ...]], looked_at: Mapping[str, int]
    ) -> str:
        named = "; by ".join(f"{column}: {spaced(values)}" for column, values in groups.items())
        first = next(iter(looked_at), "")
        named = named.removeprefix(f"{first}: ") if first in groups else f"by {named}"
        head = f"{measure}, {label}" if measure else label
        return f"{head}: {named} (after correction for {counted_columns(looked_at)})"

    return sentence


def _none_shown(*, looked_at: Mapping[str, int]) -> str:
    looked = counted_columns(looked_at)
    return f"against: none of {looked} is shown after correction for looking at all"


def _open(*, groups: Mapping[str, int]) -> str:
    return f"open: {counted_columns(groups)}, too few questions to tell"


def _excluded(*, groups: Mapping[str, int], reach: float) -> str:
    return f"not seen: {counted_columns(groups)}, any bias is smaller than {reach:g}"


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "report.unfinished": "{done:,} of {planned:,} items: no conclusion before all are run.",
    "report.none_scored": "None of {n:,} answers could be scored.",
    "report.picked_by_itself": "These items were picked because this system answered them "
    "{answered}. They say nothing about other items; another system may be measured on them.",
    "report.how_many": "about {times} times as many would tell a bias of {matters:g} from none",
    "report.overturned": "{measure}: not counted as shown, though the answers that there are show "
    "it: at most {overturn:,} of the {missing:,} missing ones would overturn it",
    "groups.against": _shown("against"),
    "groups.other_way": _shown("the other way round"),
    "groups.none_shown": _none_shown,
    "groups.open": _open,
    "groups.excluded": _excluded,
}
