"""The evidence of a gateway: real folders, real faults, real kills."""

import asyncio
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from evenhand.cli.app import app
from evenhand.core import Answer, Draft
from evenhand.core.errors import UserError
from evenhand.gateway.books import ExchangeRecorder
from evenhand.gateway.evidence import EvidenceLost, EvidenceWriter
from evenhand.gateway.policy import Policy
from evenhand.gateway.recorded import NOT_KEPT, rows
from evenhand.gateway.traffic import Traffic, as_folder, place_of
from evenhand.gateway.verdicts import Action, ExchangeVerdict
from evenhand.runs.store import RunReader, RunWriter
from tests.errors import assert_names, raises_naming

from .exchanges import AFTER, BEFORE, NOON, exchange, kept, passed, refused, repaired, turn

KEY = b"a key of the gateway's own"
DAY = 86_400.0


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@asynccontextmanager
async def writing(
    folder: Path, content: str = "on", **wishes: Any
) -> AsyncIterator[EvidenceWriter]:
    tenants = wishes.pop("kept", {"team-hr": kept(content)})
    usual: dict[str, Any] = {"key": KEY, "clock": lambda: NOON, "retry_seconds": 0.01}
    evidence = EvidenceWriter(folder, tenants, **(usual | wishes))
    await evidence.start()
    try:
        yield evidence
    finally:
        await evidence.close()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not true():
            await asyncio.sleep(0.01)


def run_of(folder: Path, tenant: str = "team-hr", day: str = "2026-11-16") -> RunReader:
    return RunReader(place_of(str(folder), day, tenant, ""))


def rows_of(run: RunReader) -> dict[str, dict[str, Any]]:
    return {row["item_id"]: row for row in run.results().collect().to_dicts()}


# -- what is on record -------------------------------------------------------------------------


async def test_each_text_of_an_exchange_is_an_item_with_its_turns(tmp_path: Path) -> None:
    async with writing(tmp_path) as evidence:
        evidence.record(exchange("x", repaired(), passed()))
    run = run_of(tmp_path)
    rows = rows_of(run)
    assert list(rows) == ["x-0", "x-1"]
    first = rows["x-0"]
    assert (first["status"], first["stopped"], first["changed"]) == ("answered", "accepted", True)
    assert (first["answer_before"], first["text"]) == (BEFORE, AFTER)
    assert {one["name"]: one["value"] for one in first["scores_before"]} == {
        "harm": 0.75,
        "screen": 0.6,
    }
    assert [one["value"] for one in first["scores_after"]] == [0.0]
    assert (first["calls"], first["prompt_tokens"], first["completion_tokens"]) == (2, 20, 6)
    assert {tag["name"]: tag["value"] for tag in first["tags"]} == {
        "tenant": "team-hr",
        "route": "/chat/completions",
        "model": "gpt-x",
        "action": "repaired",
        "reason": "accepted",
    }
    assert (rows["x-1"]["stopped"], rows["x-1"]["changed"]) == ("clean", False)
    turns = run.turns().collect()
    assert turns["item_id"].to_list() == ["x-0", "x-0"]
    assert turns["position"].to_list() == [0, 0]
    assert turns["index"].to_list() == [0, 1]
    assert run.record.method["name"] == "stardtox"


async def test_what_no_check_came_to_an_end_on_is_never_answered(tmp_path: Path) -> None:
    unjudged = ExchangeVerdict(action=Action.PASSED, before="Hello.", text="Hello.", reason="clean")
    wanting = refused(Action.FLAGGED, "deadline")
    async with writing(tmp_path) as evidence:
        evidence.record(exchange("run-not", refused(Action.NOT_RUN, "overloaded")))
        evidence.record(exchange("blocked", refused(Action.BLOCKED, "unrepaired")))
        evidence.record(exchange("broke-off", wanting))
        evidence.record(exchange("unjudged", unjudged))
        evidence.record(exchange("empty"))
        evidence.record(exchange("fine", passed()))
    run = run_of(tmp_path)
    assert run.totals().failed == {
        "blocked:unrepaired": 1,
        "flagged:deadline": 1,
        "not_run:overloaded": 1,
        "passed:clean": 1,
        "passed:no_text": 1,
    }
    assert run.totals().answered == 1
    rows = rows_of(run)
    assert rows["run-not-0"]["text"] is None
    assert rows["run-not-0"]["answer_before"] == BEFORE


async def test_a_flagged_answer_is_on_record_as_it_went_out(tmp_path: Path) -> None:
    tried = Answer(
        drafts=(Draft(text=BEFORE, scores={"harm": 0.75}), Draft(text=AFTER, scores={"harm": 0.5})),
        stopped="max_iterations",
    )
    flagged = replace(refused(Action.FLAGGED, "unrepaired"), answer=tried)
    async with writing(tmp_path) as evidence:
        evidence.record(exchange("x", flagged))
    row = rows_of(run_of(tmp_path))["x-0"]
    assert (row["text"], row["answer_before"], row["changed"]) == (BEFORE, BEFORE, False)
    assert row["stopped"] == "flagged:unrepaired"
    assert [draft["text"] for draft in row["drafts"]] == [BEFORE, AFTER, BEFORE]


async def test_runs_show_report_list_and_pairs_read_production_traffic(tmp_path: Path) -> None:
    async with writing(tmp_path) as evidence:
        for number in range(3):
            evidence.record(exchange(f"r{number}", repaired()))
        evidence.record(exchange("b", refused(Action.BLOCKED, "unrepaired")))
    place = place_of(str(tmp_path), "2026-11-16", "team-hr", "")
    for command, said in {
        ("runs", "show", place): "blocked:unrepaired",
        ("report", place, "--json"): '"blocked:unrepaired": 1',
        ("runs", "list", str(tmp_path)): "4, 1 failed",
        ("runs", "verify", place): "all intact",
        ("train", "pairs", "from-run", place, "--out", str(tmp_path / "pairs")): "items used: 3",
    }.items():
        done = await asyncio.to_thread(CliRunner().invoke, app, command)
        assert done.exit_code == 0, done.output
        assert said in done.output


# -- open and ended ----------------------------------------------------------------------------


async def test_a_run_is_open_while_it_is_written_and_ended_when_the_gateway_stops(
    tmp_path: Path, clock: Clock
) -> None:
    async with writing(tmp_path, clock=clock) as evidence:
        evidence.record(exchange("x", passed()))
        await evidence.flush()
        clock.now += 61
        evidence.record(exchange("y", passed()))
        await until(lambda: run_of(tmp_path).totals().items == 2)
        assert run_of(tmp_path).open
        page = await asyncio.to_thread(
            CliRunner().invoke, app, ("report", str(run_of(tmp_path).path), "--json")
        )
        assert page.exit_code == 2, "what is open must not be handed over as if it were whole"
        assert '"open": true' in page.output
    assert not run_of(tmp_path).open
    async with writing(tmp_path) as evidence:  # a restart on the same day
        evidence.record(exchange("z", passed()))
        await until(lambda: run_of(tmp_path).open)
    assert list(rows_of(run_of(tmp_path))) == ["x-0", "y-0", "z-0"]
    assert not run_of(tmp_path).open


async def test_at_midnight_the_day_is_ended_and_the_next_one_begun(
    tmp_path: Path, clock: Clock
) -> None:
    midnight = NOON + DAY / 2
    async with writing(tmp_path, clock=clock) as evidence:
        clock.now = midnight - 1
        evidence.record(exchange("before", passed(), at=midnight - 1))
        await evidence.flush()
        clock.now = midnight + 5
        evidence.record(exchange("late", passed(), at=midnight - 0.5))
        evidence.record(exchange("after", passed(), at=midnight))
        await evidence.flush()
        assert run_of(tmp_path).open, "an exchange of before midnight may still come"
        clock.now = midnight + 601
        await until(lambda: not run_of(tmp_path).open)
        assert list(rows_of(run_of(tmp_path))) == ["before-0", "late-0"]
        assert run_of(tmp_path, day="2026-11-17").open
    assert list(rows_of(run_of(tmp_path, day="2026-11-17"))) == ["after-0"]


async def test_another_policy_on_the_same_day_begins_a_folder_of_its_own(tmp_path: Path) -> None:
    for number, iterations in enumerate((1, 2, 1)):
        tenants = {"team-hr": kept(max_iterations=iterations)}
        async with writing(tmp_path, kept=tenants) as evidence:
            evidence.record(exchange(f"x{number}", passed()))
    first = place_of(str(tmp_path), "2026-11-16", "team-hr", "")
    assert [len(rows_of(RunReader(place))) for place in (first, f"{first}+2")] == [2, 1]
    assert RunReader(f"{first}+2").record.method["settings"] == {"max_iterations": 2}


# -- what of the texts is on disk --------------------------------------------------------------

CANARIES = ("quokka", "wombat", "numbat", "bilby", "dugong", "potoroo", "echidna", "kowari")


def told(canaries: tuple[str, ...]) -> Any:
    before, after, asked, said, reasoned, failed, prompt, context = canaries
    verdict = repaired(f"a {before} here", f"one {after} there")
    assert verdict.answer is not None
    drafts = [replace(draft, reasoning=f"so {reasoned}") for draft in verdict.answer.drafts]
    spelled = turn(f"see {asked}", f"well {said}", logprobs=f'["{said}"]')
    broken = turn(f"see {asked}", "", error="model_busy", error_message=f"HTTP 500: {failed}")
    verdict = replace(
        verdict,
        answer=replace(verdict.answer, drafts=tuple(drafts)),
        turns=(spelled, broken),
    )
    blocked = refused(Action.BLOCKED, "unrepaired", f"a {before} here")
    return exchange("x", verdict, blocked, prompt=f"what of {prompt}", context=f"after {context}")


def bytes_of(folder: Path) -> Iterator[bytes]:
    for path in folder.rglob("*"):
        yield str(path).encode()
        if path.is_file():
            yield path.read_bytes()
    for run in folder.rglob("run.json"):  # what is compressed in parts
        reader = RunReader(run.parent)
        for table in (reader.results(), reader.turns()):
            yield repr(table.collect().to_dicts()).encode()


@pytest.mark.parametrize("content", ["off", "hashed"])
async def test_no_byte_of_a_text_is_on_disk_unless_the_policy_keeps_content(
    tmp_path: Path, content: str
) -> None:
    async with writing(tmp_path, content) as evidence:
        evidence.record(told(CANARIES))
        await evidence.flush()
        journal = b"".join(path.read_bytes() for path in tmp_path.rglob("*.log"))
        assert b'"x-0"' in journal
        seen = [*bytes_of(tmp_path)]
    seen += bytes_of(tmp_path)
    held = b"\n".join(seen)
    assert [one for one in CANARIES if one.encode() in held] == []
    assert b"cd" * 32 not in held, "the plain hash of a request can be tried with guessed texts"
    row = rows_of(run_of(tmp_path))["x-0"]
    assert row["changed"]
    assert row["scores_before"]


async def test_the_canaries_are_found_where_content_is_kept(tmp_path: Path) -> None:
    """Else the test above could not fail."""
    async with writing(tmp_path) as evidence:
        evidence.record(told(CANARIES))
    held = b"\n".join(bytes_of(tmp_path))
    absent = {one for one in CANARIES if one.encode() not in held}
    assert absent == {CANARIES[-1]}, "a run keeps no context"


async def test_equal_texts_have_equal_hashes_under_one_key_and_others_under_another(
    tmp_path: Path,
) -> None:
    found: list[tuple[str, str]] = []
    for key in (KEY, KEY, b"another key of 16 bytes"):
        place = tmp_path / str(len(found))
        async with writing(place, "hashed", key=key) as evidence:
            evidence.record(exchange("x", passed("One text.")))
            evidence.record(exchange("y", passed("Another text.")))
        rows = rows_of(run_of(place))
        found.append((rows["x-0"]["text"], rows["y-0"]["text"]))
    assert found[0] == found[1]
    assert len({*found[0], *found[2]}) == 4


def test_hashes_without_a_key_are_refused(tmp_path: Path) -> None:
    with raises_naming(UserError, "hashed", "16 bytes"):
        EvidenceWriter(tmp_path, {"team-hr": kept("hashed")}, key=b"short")


async def test_pairs_are_not_made_of_hashes(tmp_path: Path) -> None:
    async with writing(tmp_path, "hashed") as evidence:
        evidence.record(exchange("x", repaired()))
    run = str(run_of(tmp_path).path)
    done = await asyncio.to_thread(
        CliRunner().invoke,
        app,
        ("train", "pairs", "from-run", run, "--out", str(tmp_path / "pairs")),
    )
    assert isinstance(done.exception, UserError) or "holds no texts" in done.output


async def test_the_id_of_the_header_finds_the_items_of_an_exchange(tmp_path: Path) -> None:
    async with writing(tmp_path) as evidence:
        evidence.record(exchange("eh-1", refused(Action.BLOCKED, "unrepaired"), passed()))
        evidence.record(exchange("eh-12", passed()))
    run = str(run_of(tmp_path).path)
    shown = await asyncio.to_thread(
        CliRunner().invoke, app, ("runs", "show", run, "--item", "eh-1")
    )
    assert shown.exit_code == 0, shown.output
    for words in ("eh-1-0", "eh-1-1", "Describe a nurse.", BEFORE, "blocked:unrepaired"):
        assert words in shown.output
    assert "eh-12" not in shown.output
    assert (
        await asyncio.to_thread(CliRunner().invoke, app, ("runs", "show", run, "--item", "eh-12-0"))
    ).exit_code == 0


async def test_a_gateways_run_has_no_report_of_a_benchmark_and_says_what_to_use(
    tmp_path: Path,
) -> None:
    async with writing(tmp_path) as evidence:
        evidence.record(exchange("x", passed()))
    refused_ = await asyncio.to_thread(
        CliRunner().invoke, app, ("report", str(run_of(tmp_path).path))
    )
    assert refused_.exit_code
    assert "evenhand report" in str(refused_.exception) + refused_.output


async def test_a_judges_words_and_marks_are_kept_as_they_were(tmp_path: Path) -> None:
    mark = '{"reason": "A claim about colleague 3.", "harm": 80}'
    prompt = "Describe colleague number 3."
    verdict = replace(repaired(), turns=(turn(prompt, mark),))
    async with writing(tmp_path) as evidence:
        evidence.record(exchange("x", verdict, prompt=prompt))
    run = run_of(tmp_path)
    assert rows_of(run)["x-0"]["prompt"] == prompt
    [told_] = run.turns().collect().to_dicts()
    assert told_["texts"] == [mark]


async def test_personal_data_and_keys_are_masked_where_content_is_kept(tmp_path: Path) -> None:
    secret = "sk-canary-secretsecret"
    prompt = f"Write to Priya Raghunathan, priya.r@example.org or +44 20 7946 0958. {secret}"
    answer = "the letter to priya raghunathan is for Jewish and Black readers"
    said = turn("Is Mr. Oyelaran here?", "yes, Oyelaran is")
    verdict = replace(repaired(answer, "a letter to raghunathan"), turns=(said,))

    def redact(text: str) -> str:
        return text.replace(secret, "[redacted]")

    async with writing(tmp_path, redact=redact) as evidence:
        evidence.record(exchange("x", verdict, prompt=prompt))
    held = b"\n".join(bytes_of(tmp_path)).lower()
    for one in ("priya", "raghunathan", "example.org", "7946", "oyelaran", "canary"):
        assert one.encode() not in held
    row = rows_of(run_of(tmp_path))["x-0"]
    masked = "the letter to [name] [name] is for Jewish and Black readers"
    assert row["answer_before"] == masked


async def test_off_marks_what_it_left_out(tmp_path: Path) -> None:
    async with writing(tmp_path, "off") as evidence:
        evidence.record(exchange("x", repaired()))
    row = rows_of(run_of(tmp_path))["x-0"]
    assert [row["text"], row["answer_before"], row["prompt"]] == [NOT_KEPT] * 3


# -- tenants and replicas ----------------------------------------------------------------------

HOSTILE = (
    "..",
    ".",
    "",
    "a/b",
    "a-b",
    "a=2Fb",
    "A/../b",
    "results",
    "=results",
    "é" * 40,
    "x" * 300,
)


async def test_tenants_never_share_a_folder_nor_leave_it(tmp_path: Path) -> None:
    root = tmp_path / "evidence"
    tenants = {name: kept() for name in HOSTILE}
    async with writing(root, kept=tenants) as evidence:
        for name in HOSTILE:
            evidence.record(exchange("x", passed(), tenant=name))
    assert [*tmp_path.iterdir()] == [root]
    runs = [RunReader(path.parent) for path in root.rglob("run.json")]
    assert Counter(run.record.source["tenant"] for run in runs) == Counter(HOSTILE)
    listed = await asyncio.to_thread(CliRunner().invoke, app, ("runs", "list", str(root), "--json"))
    assert listed.output.count('"kind": "gateway"') == len(HOSTILE)


@given(st.lists(st.text(), min_size=2, max_size=2, unique=True))
def test_no_two_names_have_one_folder(names: list[str]) -> None:
    one, other = map(as_folder, names)
    assert one != other
    assert "/" not in one
    assert not one.startswith(".")
    assert len(one) < 200


async def test_replicas_write_beside_each_other(tmp_path: Path) -> None:
    async with (
        writing(tmp_path, replica="pod-1") as one,
        writing(tmp_path, replica="pod-2") as other,
    ):
        one.record(exchange("x", passed()))
        other.record(exchange("y", passed()))
    for name, item in (("pod-1", "x-0"), ("pod-2", "y-0")):
        assert list(rows_of(RunReader(tmp_path / "2026-11-16/team-hr" / name))) == [item]


# -- faults ------------------------------------------------------------------------------------


async def test_a_file_in_the_folders_place_costs_nothing_once_it_is_gone(tmp_path: Path) -> None:
    place = tmp_path / "evidence"
    place.write_text("in the way")
    async with writing(place) as evidence:
        evidence.record(exchange("x", repaired()))
        await evidence.flush()
        assert not evidence.healthy
        assert evidence.problem
        place.unlink()
        await until(lambda: evidence.healthy)
    assert list(rows_of(run_of(place))) == ["x-0"]
    assert not any(evidence.lost.values())


async def test_what_never_could_be_written_is_counted_by_its_action(tmp_path: Path) -> None:
    place = tmp_path / "evidence"
    place.write_text("in the way")
    async with writing(place, waiting=3) as evidence:
        for number in range(2):
            evidence.record(exchange(f"p{number}", passed()))
        evidence.record(exchange("b", refused(Action.BLOCKED, "unrepaired")))
        evidence.record(exchange("r", repaired()))  # no room for it
        assert evidence.lost[Action.REPAIRED] == 1
    assert evidence.lost == {
        Action.PASSED: 2,
        Action.REPAIRED: 1,
        Action.FLAGGED: 0,
        Action.NOT_RUN: 0,
        Action.BLOCKED: 1,
    }
    assert not evidence.healthy


# -- evidence that is required -------------------------------------------------------------------


async def test_where_evidence_is_required_an_answer_waits_until_it_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    for name in ("add", "sync"):
        real = getattr(Traffic, name)

        def noted(self: Traffic, *given: Any, name: str = name, real: Any = real) -> None:
            real(self, *given)
            steps.append(name)

        monkeypatch.setattr(Traffic, name, noted)
    async with writing(tmp_path, require_evidence=True) as evidence:
        await evidence.written(exchange("x", passed()))
        steps.append("sent")
        journal = b"".join(path.read_bytes() for path in tmp_path.rglob("*.log"))
        assert b'"x-0"' in journal
    assert steps == ["add", "sync", "sent"]


async def test_where_evidence_is_required_a_disk_that_refuses_holds_answers_back(
    tmp_path: Path,
) -> None:
    place = tmp_path / "evidence"
    place.write_text("in the way")
    async with writing(place, require_evidence=True, retry_seconds=0.2) as evidence:
        with pytest.raises(EvidenceLost):
            await evidence.written(exchange("x", passed()))  # tried
        assert not evidence.healthy
        with pytest.raises(EvidenceLost):
            await evidence.written(exchange("y", passed()))  # known
        evidence.record(exchange("b", refused(Action.BLOCKED, "unrepaired")))
        place.unlink()
        await until(lambda: evidence.healthy)
        await evidence.written(exchange("z", passed()))
    rows = rows_of(run_of(place))
    assert list(rows) == ["x-0", "y-0", "b-0", "z-0"]
    assert [row["reason"] for row in rows.values()] == [
        "blocked:not_recorded",
        "blocked:not_recorded",
        "blocked:unrepaired",
        None,
    ]
    assert not any(evidence.lost.values())


async def test_where_evidence_is_required_a_disk_that_hangs_lets_no_answer_go_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging, real = threading.Event(), Traffic.add

    def slow(self: Traffic, *given: Any) -> None:
        hanging.wait(60)
        real(self, *given)

    monkeypatch.setattr(Traffic, "add", slow)
    async with writing(tmp_path, require_evidence=True, patience=0.1) as evidence:
        for name in ("x", "y"):
            with pytest.raises(EvidenceLost):
                await evidence.written(exchange(name, passed()))
        assert not evidence.healthy
        assert_names(evidence.problem, "0.1 s")
        hanging.set()
        await until(lambda: evidence.healthy)
        await evidence.written(exchange("z", passed()))
    rows = {name: row["reason"] for name, row in rows_of(run_of(tmp_path)).items()}
    held = "blocked:not_recorded"
    assert rows == {"x-0": None, "x-held": held, "y-0": held, "z-0": None}
    assert not any(evidence.lost.values())


async def test_what_is_lost_is_counted_by_what_the_client_saw(tmp_path: Path) -> None:
    place = tmp_path / "evidence"
    place.write_text("in the way")
    async with writing(place, require_evidence=True, waiting=1) as evidence:
        for number in range(3):
            with pytest.raises(EvidenceLost):
                await evidence.written(exchange(f"p{number}", passed()))
    assert evidence.lost == {**dict.fromkeys(Action, 0), Action.BLOCKED: 3}


async def test_a_client_that_leaves_while_the_disk_is_waited_for_was_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging, real = threading.Event(), Traffic.add

    def slow(self: Traffic, *given: Any) -> None:
        hanging.wait(60)
        real(self, *given)

    monkeypatch.setattr(Traffic, "add", slow)
    books = ExchangeRecorder(Policy(require_evidence=True), ("team-hr",))
    async with writing(tmp_path, require_evidence=True) as evidence:
        books.keep(evidence)
        waiting = asyncio.create_task(books.written(exchange("x", passed())))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        hanging.set()
    rows = {name: row["reason"] for name, row in rows_of(run_of(tmp_path)).items()}
    assert rows == {"x-0": None, "x-held": "blocked:broken_off"}


async def test_a_folder_that_is_removed_is_noticed_and_what_was_not_committed_written_again(
    tmp_path: Path, clock: Clock
) -> None:
    async with writing(tmp_path, clock=clock) as evidence:
        evidence.record(exchange("x", repaired()))
        await evidence.flush()
        shutil.rmtree(tmp_path / "2026-11-16")
        evidence.record(exchange("y", passed()))  # goes into a journal that nobody can find
        await evidence.flush()
        clock.now += 61
        await until(lambda: "is gone" in evidence.problem and evidence.healthy)
    assert list(rows_of(run_of(tmp_path))) == ["x-0", "y-0"]
    assert not any(evidence.lost.values())


async def test_a_writer_that_was_taken_over_stops_and_writes_its_rows_when_it_may_again(
    tmp_path: Path, clock: Clock
) -> None:
    async with writing(tmp_path, clock=clock) as evidence:
        evidence.record(exchange("x", repaired()))
        await evidence.flush()
        place = str(tmp_path / "2026-11-16/team-hr")
        other = RunWriter.open(place, run_of(tmp_path).record, steal_lock=True)
        clock.now += 61
        evidence.record(exchange("y", passed()))
        await until(lambda: not evidence.healthy)
        other.let_go()
        await until(lambda: evidence.healthy)
    found = run_of(tmp_path).results().collect()["item_id"].to_list()
    assert sorted(found) == ["x-0", "y-0"]
    assert not any(evidence.lost.values())


async def test_a_poisoned_exchange_is_counted_and_the_ones_behind_it_are_written(
    tmp_path: Path,
) -> None:
    broken = replace(passed(), screen=object())  # type: ignore[arg-type]
    async with writing(tmp_path) as evidence:
        evidence.record(exchange("broken", broken))
        evidence.record(exchange("stranger", passed(), tenant="nobody"))
        evidence.record(exchange("half", passed("half a pair \ud83d"), model="\ud83d"))
        evidence.record(exchange("fine", passed()))
    assert list(rows_of(run_of(tmp_path))) == ["half-0", "fine-0"]
    assert evidence.lost[Action.PASSED] == 2


async def test_a_full_disk_loses_nothing_once_there_is_room(tmp_path: Path, clock: Clock) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.decode()}")
    try:
        await _fill(disk, clock)
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def noise(letters: int) -> str:
    """What no compression makes small."""
    chance = random.Random(letters)
    return "".join(chance.choice("abcdefghijklmnop") for _ in range(letters))


async def _fill(disk: Path, clock: Clock) -> None:
    names = [f"x{number}" for number in range(60)]
    async with writing(disk, clock=clock) as evidence:
        for name in names:
            clock.now += 7  # a commit now and then
            evidence.record(exchange(name, repaired(noise(6000))))
            await evidence.flush()
        assert not evidence.healthy
        assert "no room" in evidence.problem
        subprocess.run(["mount", "-o", "remount,size=16m", disk], check=True)
        await until(lambda: evidence.healthy)
        assert evidence.waiting == 0
    found = run_of(disk).results().collect()["item_id"].to_list()
    assert found == [f"{name}-0" for name in names]
    assert not any(evidence.lost.values())


# -- kill -9 -----------------------------------------------------------------------------------

KILLED = """
import asyncio, sys
sys.path.insert(0, sys.argv[2])
from tests.gateway.exchanges import NOON, exchange, kept, passed, repaired
from evenhand.gateway.books import ExchangeRecorder
from evenhand.gateway.evidence import EvidenceWriter

async def main():
    evidence = EvidenceWriter(sys.argv[1], {"team-hr": kept()}, clock=lambda: NOON + 25 * count)
    await evidence.start()
    global count
    while True:
        evidence.record(exchange(f"k{count}", repaired(), passed()))
        await evidence.flush()
        print(count, flush=True)
        count += 1

count = 0
asyncio.run(main())
"""


@pytest.mark.parametrize("after", [1, 7, 20])
async def test_what_was_in_a_journal_when_the_process_was_killed_is_committed_by_the_next(
    tmp_path: Path, after: int
) -> None:
    root = str(Path(__file__).parents[2])
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, tmp_path / "evidence", root],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    said = [int(process.stdout.readline()) for _ in range(after)]
    process.send_signal(signal.SIGKILL)
    said += [int(line) for line in process.stdout]
    process.wait()
    process.stdout.close()
    assert run_of(tmp_path / "evidence").open, "a killed writer has ended nothing"
    async with writing(tmp_path / "evidence", clock=lambda: NOON + DAY) as evidence:
        assert not run_of(tmp_path / "evidence").open, "the next process ended it at its start"
        assert evidence.healthy
    run = run_of(tmp_path / "evidence")
    found = run.results().collect()["item_id"].to_list()
    assert len(set(found)) == len(found)
    assert {f"k{n}-{text}" for n in said for text in (0, 1)} <= set(found)
    turns = Counter(run.turns().collect()["item_id"].to_list())
    assert all(turns[name] == (2 if name.endswith("-0") else 0) for name in found)


async def test_a_journal_of_a_killed_replica_is_committed_by_another_and_a_live_ones_is_left(
    tmp_path: Path,
) -> None:
    folder, root = tmp_path / "evidence", str(Path(__file__).parents[2])
    script = KILLED.replace("kept()}, clock", 'kept()}, replica="pod-1", clock')
    process = subprocess.Popen(
        [sys.executable, "-c", script, folder, root], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    alive = Traffic.of(str(folder), "2026-11-16", "team-hr", "pod-2", kept())
    alive.add(rows(exchange("e1", passed()), "on", KEY, str), NOON)
    places = [place_of(str(folder), "2026-11-16", "team-hr", pod) for pod in ("pod-1", "pod-2")]
    assert [RunReader(place).open for place in places] == [True, True]
    adopted: list[str] = []
    # They have another tenant, and both want the same journal.
    wishes: dict[str, Any] = {"kept": {"search": kept()}, "adopted": adopted.append}
    async with (
        writing(folder, replica="pod-3", **wishes),
        writing(folder, replica="pod-4", **wishes),
    ):
        assert adopted == places[:1]
        assert [RunReader(place).open for place in places] == [False, True]
    found = RunReader(places[0]).results().collect()["item_id"].to_list()
    assert {"k0-0", "k0-1"} <= set(found)
    assert len(set(found)) == len(found)
    alive.end()
    assert rows_of(RunReader(places[1])).keys() == {"e1-0"}


async def test_journals_are_looked_for_while_a_gateway_serves(tmp_path: Path, clock: Clock) -> None:
    adopted: list[str] = []
    gone = Traffic.of(str(tmp_path), "2026-11-16", "team-hr", "pod-1", kept())
    async with writing(tmp_path, replica="pod-2", clock=clock, adopted=adopted.append) as evidence:
        gone.add(rows(exchange("e1", passed()), "on", KEY, str), NOON)
        for seconds, found in ((30, 0), (61, 0), (122, 1)):
            if seconds == 122:
                gone._drop()  # what the death of its process does to the lock
            clock.now = NOON + seconds
            evidence.record(exchange(f"s{seconds}", passed()))
            await evidence.flush()
            assert len(adopted) == found
    assert rows_of(RunReader(place_of(str(tmp_path), "2026-11-16", "team-hr", "pod-1"))).keys() == {
        "e1-0"
    }
