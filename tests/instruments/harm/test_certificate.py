"""Which certificate lets a harm be used, and how looks at the same examples are counted."""

from pathlib import Path
from typing import Any

import pytest

from evenhand.core.errors import UserError
from evenhand.experiments import config
from evenhand.findings.audit import State, overall
from evenhand.findings.certificate import Certificate, CertifiedCheck, CertifiedJudge
from evenhand.instruments.harm.certificate import (
    METHOD,
    holding,
    looks_before,
    refuse_unreadable,
)
from evenhand.instruments.harm.measures import NAMES
from evenhand.instruments.harm.policy import OwnHarm
from evenhand.runs.store.run_record import now
from tests.instruments.harm.test_reading import harm_of, rows

NOV, DEC = "2025-11-01T00:00:00Z", "2025-12-01T00:00:00Z"


@pytest.fixture
def harm(tmp_path: Path) -> OwnHarm:
    found: OwnHarm = harm_of(tmp_path, rows())
    return found


def write(folder: Path, harm: OwnHarm, name: str, state: State, **said: Any) -> None:
    """Put a certificate of this harm into the folder, sealed as a check seals it."""
    folder.mkdir(exist_ok=True)
    asked = harm.asked
    names = said.pop("names", NAMES)
    kept = [CertifiedCheck(name=one, state=state, required=True, says="") for one in sorted(names)]
    made = Certificate(
        kind=METHOD,
        run={"run.json": "0" * 64, "answers": "0" * 64},
        judge=CertifiedJudge(model="m", served_by=[], described={}),
        prompts=asked.hashes,
        margins=harm.config.bars,
        limits={},
        seed=1,
        evenhand="0",
        calls=0,
        checks=kept,
        state=overall(kept),
        **{
            "method": {"name": METHOD, "settings": asked.settings},
            "benchmark": {"examples": harm.examples.sha256, "texts": ["one", "two"]},
            "created": NOV,
            **said,
        },
    )
    (folder / f"{name}.json").write_bytes(made.sealed().to_bytes())


def test_the_newest_certificate_decides_and_of_two_at_once_the_one_that_fails(
    tmp_path: Path, harm: OwnHarm
) -> None:
    folder = tmp_path / "kept"
    write(folder, harm, "a", "pass")
    assert isinstance(holding(harm, folder), Certificate)
    write(folder, harm, "b", "fail", created=DEC)
    assert "says fail" in str(holding(harm, folder))
    write(folder, harm, "c", "pass", created=DEC)
    assert "says fail" in str(holding(harm, folder))


@pytest.mark.parametrize("created", ["2999-01-01T00:00:00Z", "zzz", "", "2025-11-01T00:00:00"])
def test_a_certificate_that_is_not_of_the_past_opens_nothing(
    tmp_path: Path, harm: OwnHarm, created: str
) -> None:
    write(tmp_path / "kept", harm, "a", "fail")
    write(tmp_path / "kept", harm, "b", "pass", created=created)
    assert "which is not in the past" in str(holding(harm, tmp_path / "kept"))


def test_a_certificate_without_every_check_opens_nothing(tmp_path: Path, harm: OwnHarm) -> None:
    write(tmp_path / "kept", harm, "a", "pass", names={"x"})
    assert isinstance(holding(harm, tmp_path / "kept"), str)


@pytest.mark.parametrize(
    "said",
    [
        {"method": {"name": METHOD, "settings": {}}},
        {"method": {"name": METHOD}},
        {"benchmark": {}},
        {"benchmark": {"texts": [1]}},
    ],
)
def test_a_certificate_that_lacks_a_part_is_refused_before_anything_is_asked(
    tmp_path: Path, harm: OwnHarm, said: dict[str, Any]
) -> None:
    write(tmp_path / "kept", harm, "a", "pass", **said)
    assert "not a harm certificate" in str(holding(harm, tmp_path / "kept"))
    with pytest.raises(UserError, match="not a harm certificate"):
        refuse_unreadable(tmp_path / "kept")


def test_a_look_counts_whatever_the_harm_is_called(tmp_path: Path, harm: OwnHarm) -> None:
    write(tmp_path / "kept", harm, "a", "fail")
    settings = harm.asked.settings | {"harm": "another"}
    write(tmp_path / "kept", harm, "b", "fail", method={"name": METHOD, "settings": settings})
    assert looks_before(frozenset({"two", "three"}), DEC, tmp_path / "kept") == 2
    assert looks_before(frozenset({"three"}), DEC, tmp_path / "kept") == 0


def test_a_full_stop_makes_no_new_example_so_the_second_look_is_counted(
    tmp_path: Path, harm: OwnHarm
) -> None:
    before = sorted({one.digest for one in harm.examples.all})
    write(tmp_path / "kept", harm, "a", "fail", benchmark={"examples": "a" * 64, "texts": before})
    dotted = harm_of(tmp_path, [{**row, "text": f"{row['text']} . "} for row in rows()])
    texts = frozenset(one.digest for one in dotted.examples.all)
    assert dotted.examples.sha256 != harm.examples.sha256
    assert looks_before(texts, DEC, tmp_path / "kept") == 1


def test_of_two_checks_in_the_same_second_the_second_is_a_second_look(
    tmp_path: Path, harm: OwnHarm
) -> None:
    first = now()
    write(tmp_path / "kept", harm, "a", "fail", created=first)
    while (second := now()) == first:
        pass  # for a millisecond at most
    assert looks_before(frozenset({"two"}), second, tmp_path / "kept") == 1
    assert looks_before(frozenset({"two"}), first, tmp_path / "kept") == 0  # not itself


@pytest.mark.parametrize("kind", ["models", "scorers"])
def test_no_model_and_no_scorer_is_called_as_a_harm(tmp_path: Path, kind: str) -> None:
    """It would be in use where a harm that nobody certified is named."""
    said = 'model = "m"' if kind == "models" else 'kind = "http"\nurl = "http://127.0.0.1:1"'
    (tmp_path / "e.toml").write_text(f'[{kind}."harm:t"]\n{said}\n')
    with pytest.raises(UserError, match="used twice"):
        config.load(tmp_path / "e.toml", None, None)


def test_without_a_folder_of_certificates_nothing_is_checked() -> None:
    with pytest.raises(UserError, match="names no folder"):
        refuse_unreadable(None)
