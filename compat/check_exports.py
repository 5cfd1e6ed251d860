"""What `evenhand runs export` and `evenhand train pairs` write, opened by the tools that it is for;
`make check-inspect`.

    EVENHAND_DATA=data python -m compat.check_exports [FOLDER]

It is run by the Python of an environment that has evenhand, inspect_ai, datasets, huggingface_hub,
pandas and the schema of Every Eval Ever from the registry. The model is a stand-in of ours on
loopback. A line for each that was opened; it ends with code 1 at the first number that is not the
run's own, to the bit. Pictures of the viewer are left in FOLDER, if one is named.
"""

import csv
import json
import math
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import yaml
from huggingface_hub import DatasetCard, eval_result_entries_to_yaml, parse_eval_result_entries
from inspect_ai.log import EvalLog, read_eval_log, read_eval_log_sample_summaries
from jsonschema import Draft7Validator

from compat.browser import CHROMIUM, shown
from compat.commands import BIN, Commands
from compat.standin import Standin, standing_in
from evenhand.findings.report import Report, report
from evenhand.findings.scoring import values_per_item
from evenhand.instruments import instrument_of
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import as_file_name

ROOT = Path(__file__).parents[1]
KEPT = ("rtp/stardtox", "squad/default", "overcorrection/self_debias_reprompting")
TOPICS = ("gardening as a hobby", "driving at night", "learning a language", "moving house",
          "music at weddings", "sport in schools", "cooking for guests", "trains")  # fmt: skip


class Made:
    """A run of BBQ that was measured, in every form, and pairs from debates."""

    def __init__(self, commands: Commands) -> None:
        self.commands, self.folder = commands, commands.folder
        asked = ("measure", "bbq", "--per-category", "8", *commands.served)
        commands.evenhand(*asked, "--out", "runs/now")
        forms = {"inspect": "logs/now.eval", "csv": "now.csv", "hf": "hub", "eee": "records",
                 "lm-eval": "samples"}  # fmt: skip
        self.files = {form: self._exported("runs/now", form, to) for form, to in forms.items()}
        self.run = RunReader(str(self.folder / "runs/now"))
        self.report: Report = report(instrument_of(self.run), self.run)
        values = values_per_item(self.report.instrument, self.run)
        self.values = {row["item_id"]: row for row in values.iter_rows(named=True)}
        self.items = {as_file_name(item): item for item in self.values}  # by the sample's name
        self.known = [one for one in self.report.estimates if one.value is not None]
        status = self.run.results().select("item_id", "status").collect().rows()
        self.failed = {item for item, said in status if said != "answered"}
        assert self.failed, "an export without a missing answer shows too little"

    def _exported(self, run: str, form: str, to: str) -> Path:
        (file,) = self.commands.evenhand("runs", "export", run, "--to", form, "--out", to)["files"]
        return self.folder / str(file)

    def kept(self, run: str) -> Path:
        """Export a run that the tests keep."""
        to = f"logs/{run.replace('/', '-')}.eval"
        return self._exported(str(ROOT / "tests/same_numbers/kept" / run), "inspect", to)

    def pairs(self) -> Path:
        """Debate a few topics and pair what was said."""
        about = [{"prompt": topic, "tags": {"bias_type": kind, "roles": "a 20-year-old|a baker"}}
                 for kind in ("age", "beauty") for topic in TOPICS]  # fmt: skip
        lines = "".join(json.dumps(one) + "\n" for one in about)
        (self.folder / "topics.jsonl").write_text(lines)
        debate = ("train", "debate", "run", "topics.jsonl", "--rounds", "2", *self.commands.served)
        self.commands.evenhand(*debate, "--out", "runs/debate")
        self.commands.evenhand("train", "pairs", "from-debates", "runs/debate", "--out", "pairs")
        return self.folder / "pairs"


def inspect_reader(made: Made) -> str:
    """Inspect's own reader has every total, every score and every failure of the run."""
    log = read_eval_log(str(made.files["inspect"]))
    totals = same_totals(made, log)
    seen = 0
    for one in log.samples or ():
        item = made.items[str(one.id)]
        own = made.values[item]
        scores = {name: score.value for name, score in (one.scores or {}).items()}
        for name, value in own.items():
            if isinstance(value, float):
                assert scores[name] == value, (item, name, value, scores)
                seen += 1
        assert (one.error is not None) == (item in made.failed), item
        assert not (one.error and scores), item
    listed = read_eval_log_sample_summaries(str(made.files["inspect"]))
    assert {one.id for one in listed} == made.items.keys()
    for run in KEPT:
        other = read_eval_log(str(made.kept(run)))
        assert other.status == "success", run
        failed = [one for one in other.samples or () if one.error]
        assert failed, run
        assert not any(one.scores for one in failed), run
    return (f"{len(log.samples or ())} samples with {seen} scores, {len(made.failed)} with an "
            f"error; {totals} totals; and {len(KEPT)} runs of other instruments")  # fmt: skip


def same_totals(made: Made, log: EvalLog) -> int:
    """Hold the totals of a log against the report, and count them."""
    assert log.status == "success"
    assert log.results is not None
    listed = {one.name: one.metrics for one in log.results.scores}
    seen = 0
    for one in made.report.estimates:
        own = {"estimate": one.value, "low": one.low, "high": one.high}
        known = {name: value for name, value in own.items() if value is not None}
        assert {name: it.value for name, it in listed[one.name].items()} == known, one.name
        seen += len(known)
    return seen


def inspect_view(made: Made) -> str:
    """`inspect view` lists the log, serves its header and all of it, and shows both in a browser.
    The server is the real one."""
    with viewing(made) as address:
        listed = asked(f"{address}/api/logs")["files"]
        name = next(one["name"] for one in listed if one["name"].endswith("/now.eval"))
        about = urllib.parse.urlencode({"file": name})
        (header,) = asked(f"{address}/api/log-headers?{about}")
        totals = same_totals(made, EvalLog.model_validate(header))
        whole = asked(f"{address}/api/logs/{urllib.parse.quote(name, safe='')}")
        assert len(whole["samples"]) == len(made.values)
        seen = in_a_browser(made, address)
    return f"{len(listed)} logs listed, {totals} totals in the header of one; {seen}"


@contextmanager
def viewing(made: Made) -> Iterator[str]:
    """Serve the logs as `inspect view` does."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(BIN / "inspect"), "view", "start", "--log-dir", str(made.folder / "logs"),
               "--host", "127.0.0.1", "--port", str(port)]  # fmt: skip
    out = made.folder / "view.log"
    with out.open("w") as said:
        server = subprocess.Popen(
            command, cwd=made.folder, env=made.commands.environment, stdout=said, stderr=said
        )
    try:
        wait_for(f"http://127.0.0.1:{port}/", lambda: server.poll() is None, out)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(60)


def wait_for(address: str, alive: Callable[[], bool], out: Path) -> None:
    until = time.monotonic() + 120
    while alive() and time.monotonic() < until:
        try:
            urllib.request.urlopen(address, timeout=5).close()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.5)
        else:
            return
    raise AssertionError(f"inspect view does not answer: {out.read_text()}")


def asked(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=60) as reply:
        return json.loads(reply.read())


def in_a_browser(made: Made, address: str) -> str:
    """The viewer shows the log with our measures, and a sample with what was asked; a picture of
    each is left behind."""
    if CHROMIUM is None:
        return "NOT opened in a browser: there is no chromium"
    log = f"{address}/#/logs/now.eval"
    name, asked_for = sample_of(made)
    sample = f"{log}/samples/sample/{urllib.parse.quote(name, safe='')}/1/messages"
    numbers = [one.name for one in made.known[:3]]
    shown(log, ["evenhand/bbq", *numbers], made.folder / "log.png")
    shown(sample, [asked_for], made.folder / "sample.png")
    return f"in a browser the log shows {', '.join(numbers)}, and a sample what was asked"


def sample_of(made: Made) -> tuple[str, str]:
    """A sample that has an answer, by its name, and words of its prompt."""
    rows = made.run.results().select("item_id", "prompt").collect().rows()
    prompts = dict(rows)
    name, item = next(one for one in made.items.items() if one[1] not in made.failed)
    return name, prompts[item].strip().splitlines()[-1].strip()


def hub_results(made: Made) -> str:
    """huggingface_hub reads `.eval_results` and writes the same again."""
    data = yaml.safe_load(made.files["hf"].read_text())
    entries = parse_eval_result_entries(data)
    assert eval_result_entries_to_yaml(entries) == data
    main = [made.report[measure.name].value for measure in made.report.instrument.primary()]
    assert [one.value for one in entries] == main
    return f"{len(entries)} entries: {', '.join(f'{one.task_id} {one.value!r}' for one in entries)}"


def pairs_as_a_data_set(made: Made) -> str:
    """`datasets` loads every configuration of a folder of pairs, and the Hub's reader its card."""
    from datasets import load_dataset

    folder, seen = made.pairs(), {}
    card = DatasetCard.load(folder / "README.md").data.to_dict()
    assert [one["config_name"] for one in card["configs"]] == ["default", "age", "beauty"]
    for one in card["configs"]:
        name = one["config_name"]
        loaded = load_dataset(str(folder), name, cache_dir=str(made.folder / "cache"))
        assert loaded.keys() == {part["split"] for part in one["data_files"]}
        for part in one["data_files"]:
            own = [
                row for file in part["path"] for row in pl.read_parquet(folder / file).to_dicts()
            ]
            assert own, part
            assert loaded[part["split"]].to_list() == own, part
            seen[f"{name}/{part['split']}"] = len(own)
    return f"{seen}, every row the file's; licence on its card: {card['license']}"


def every_eval_ever(made: Made) -> str:
    """The record fits the schema that the project ships, and has the numbers of the report."""
    package = find_spec("every_eval_ever")
    assert package is not None, "pip install -r requirements/schemas.txt"
    place = next(iter(package.submodule_search_locations or ()))
    schema = json.loads(Path(place, "schemas/eval.schema.json").read_text())
    record = json.loads(made.files["eee"].read_text())
    validator = Draft7Validator(schema)
    validator.validate(record)
    assert not validator.is_valid(record | {"said": "more"}), "a schema that lets all pass"
    whole = [one for one in record["evaluation_results"] if one["evaluation_name"] == "bbq"]
    found = {one["metric_config"]["metric_id"].rpartition(".")[2]: one["score_details"]
             for one in whole}  # fmt: skip
    assert found.keys() == {one.name for one in made.known}
    for one in made.known:
        its = found[one.name]
        ends = its["uncertainty"].get("confidence_interval") or {}
        said = its["score"], ends.get("lower"), ends.get("upper")
        assert said == (one.value, one.low, one.high), one.name
    return f"{len(record['evaluation_results'])} results fit schema {schema['version']}"


def lm_eval_samples(made: Made) -> str:
    """The samples are rows that `datasets` reads, and give the run's own scores when imported."""
    from datasets import load_dataset

    file = made.files["lm-eval"]
    rows = load_dataset("json", data_files=str(file), cache_dir=str(made.folder / "cache"))["train"]
    assert len(rows) == len(made.values)
    again = made.commands.evenhand("runs", "import", str(file), "--out", "runs/again")
    found = {one["name"]: one["value"] for one in again["scores"]["estimates"]}
    assert {one.name: found[one.name] for one in made.known} == {
        one.name: one.value for one in made.known
    }
    return f"{len(rows)} samples; imported, {len(made.known)} measures are the run's own"


def spreadsheet(made: Made) -> str:
    """pandas and polars read the table; numbers are numbers, and no text begins a formula."""
    file, seen = made.files["csv"], 0
    read = {"pandas": pd.read_csv(file).to_dict("records"),
            "polars": pl.read_csv(file, infer_schema_length=None).to_dicts()}  # fmt: skip
    for rows in read.values():
        assert len(rows) == len(made.values)
        for row in rows:
            seen += same_row(row, made.values[row["item_id"]])
    with file.open(newline="", encoding="utf-8-sig") as text:
        cells = [cell for row in csv.reader(text) for cell in row]
    formulas = [cell for cell in cells if cell.lstrip()[:1] in "=+@" and cell.strip()]
    assert not [cell for cell in formulas if not is_number(cell)]
    return f"{len(made.values)} rows, {seen // len(read)} numbers in each of {', '.join(read)}"


def same_row(row: Mapping[str, Any], own: Mapping[str, Any]) -> int:
    """Hold the measures of a row against the run; an empty cell is what is missing."""
    measures = {name: value for name, value in own.items() if name not in ("item_id", "state")}
    for name, value in measures.items():
        cell = row[f"measure.{name}"]
        missing = cell is None or math.isnan(cell)
        assert missing if value is None else cell == value, (row["item_id"], name, value, cell)
    assert row["state"] == own["state"]
    return sum(value is not None for value in measures.values())


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


OPENED = (inspect_reader, inspect_view, hub_results, pairs_as_a_data_set, every_eval_ever,
          lm_eval_samples, spreadsheet)  # fmt: skip
TOOLS = ("inspect_ai", "datasets", "huggingface_hub", "every-eval-ever", "pandas", "polars")


def check(folder: Path, standin: Standin) -> None:
    made = Made(Commands(folder, standin))
    print(", ".join(f"{tool} {version(tool)}" for tool in TOOLS), flush=True)
    for opened in OPENED:
        print(f"{opened.__name__}: {opened(made)}", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, standing_in() as standin:
        check(Path(folder), standin)
        for to in sys.argv[1:]:
            for picture in Path(folder).glob("*.png"):
                shutil.copy(picture, to)


if __name__ == "__main__":
    main()
