"""Certificates of every kind are read by one reader and the same rules."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from evenhand.core.errors import UserError
from evenhand.findings.certificate import Certificate, CertifiedJudge
from evenhand.instruments.harm.certificate import holding
from evenhand.instruments.judge.certificate import find, keep
from evenhand.training.probes import CERTIFICATE_FILE, require_passed
from tests.instruments.harm import test_certificate as of_harms
from tests.instruments.harm.test_reading import harm_of, rows
from tests.instruments.judge import test_certificate as of_judges
from tests.training.weights import test_gate as of_rewards

KINDS = ("judge", "harm", "reward")


class Place(NamedTuple):
    """Where a certificate is looked for, and whether it opens what it is needed for."""

    file: Path
    opens: Callable[[], bool]


def _judge(folder: Path) -> Place:
    keep(of_judges._sized("pass", 1), folder)
    (file,) = folder.glob("*.json")
    return Place(file, lambda: find(folder, of_judges.WANTED).passes)


def _harm(folder: Path) -> Place:
    harm = harm_of(folder, rows())
    of_harms.write(folder / "kept", harm, "a", "pass")
    certificates = folder / "kept"
    return Place(
        certificates / "a.json", lambda: isinstance(holding(harm, certificates), Certificate)
    )


def _reward(folder: Path) -> Place:
    (folder / "model.safetensors").write_bytes(b"weights")
    of_rewards.certify(folder)

    def opens() -> bool:
        try:
            require_passed(folder, force=False)
        except UserError:
            return False
        return True

    return Place(folder / CERTIFICATE_FILE, opens)


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    made: Place = {"judge": _judge, "harm": _harm, "reward": _reward}[request.param](tmp_path)
    assert made.opens()
    return made


def _change(place: Place, **changes: Any) -> None:
    made = Certificate.from_bytes(place.file.read_bytes(), "it")
    place.file.write_bytes(made.model_copy(update=changes).sealed().to_bytes())


@pytest.mark.parametrize(
    "created", ["2999-01-01T00:00:00Z", "2999-01-01", "2026-01-01T00:00:00", "soon", ""]
)
def test_a_date_that_is_not_in_the_past_is_refused(place: Place, created: str) -> None:
    _change(place, created=created)
    assert not place.opens()


@pytest.mark.parametrize("name", ["margins", "benchmark", "seed", "created", "evenhand", "run"])
def test_a_field_that_was_edited_is_refused(place: Place, name: str) -> None:
    made = Certificate.from_bytes(place.file.read_bytes(), "it")
    edited = {"margins": {"score": 9.0}, "benchmark": {"version": "1-A"}, "seed": 7,
              "created": "2026-02-02T00:00:00Z", "evenhand": "9", "run": {}}[name]  # fmt: skip
    place.file.write_bytes(made.model_copy(update={name: edited}).to_bytes())
    assert not place.opens()


def test_a_state_that_its_checks_do_not_give_is_refused(place: Place) -> None:
    made = Certificate.from_bytes(place.file.read_bytes(), "it")
    first, *others = made.checks
    _change(place, checks=[first.model_copy(update={"state": "fail"}), *others])
    assert not place.opens()


def test_one_of_another_kind_is_refused(place: Place) -> None:
    _change(place, kind="scorer")
    assert not place.opens()


def test_one_of_another_model_is_refused(place: Place) -> None:
    _change(place, judge=CertifiedJudge(model="another", served_by=[], described={}))
    assert not place.opens()


def test_one_that_was_asked_in_another_way_is_refused(place: Place) -> None:
    made = Certificate.from_bytes(place.file.read_bytes(), "it")
    settings = {**made.method["settings"], "further": 1}
    _change(place, method={**made.method, "settings": settings})
    assert not place.opens()


def test_one_of_another_prompt_is_refused(place: Place) -> None:
    _change(place, prompts={"another@1": "d" * 64})
    assert not place.opens()


def test_one_of_another_scope_is_refused(place: Place) -> None:
    made = Certificate.from_bytes(place.file.read_bytes(), "it")
    others = {"version": "0", "examples": "e" * 64, "topics": 4}
    changed = {name: value for name, value in others.items() if name in made.benchmark}
    assert changed
    _change(place, benchmark={**made.benchmark, **changed})
    assert not place.opens()


def test_one_with_fewer_checks_is_refused(place: Place) -> None:
    made = Certificate.from_bytes(place.file.read_bytes(), "it")
    for number in range(len(made.checks)):
        _change(place, checks=[*made.checks[:number], *made.checks[number + 1 :]])
        assert not place.opens()


def test_spaces_that_change_no_value_are_no_edit(place: Place) -> None:
    place.file.write_bytes(place.file.read_bytes() + b"\n\n")
    assert place.opens()
