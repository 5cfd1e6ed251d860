# `make check` is exactly what CI runs.
PY ?= .venv/bin/python
# What is slow is printed: a new test pays for itself by making one of these faster.
PYTEST = $(PY) -m pytest --durations=20 --durations-min=5
# While writing: what breaks most often; mypy looks at what changed.
QUICK = tests/house tests/agents tests/core tests/methods tests/statistics tests/cli/test_help.py

.PHONY: check quick quick-test lint types contracts test test-cluster test-crash test-commands test-others test-real test-services test-whole test-store test-training examples docs lock sbom bench-kernel bench-ray bench-memory bench-kills bench-calls bench-judges bench-truth compat-vllm compat-litellm check-inspect check-providers bench-findings bench-conformance bench-injection bench-gate bench-gate-until bench-view bench-gateway bench-watching bench-cheaper bench-ledger bench-screen bench-remedies bench-screen-band bench-screen-cost bench-null bench-pages bench-batch

check: lint test

quick: lint
	$(MAKE) --jobs=2 --output-sync=target quick-test types contracts

quick-test:
	$(PY) -m pytest -q -m "not slow" --durations=10 $(QUICK)

# Spelling; tests/house/test_vocabulary.py looks for terms that were given up.
PAGES = README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md docs/*.md docs/tutorials/*.md design/*.md
lint:
	$(PY) -m ruff format --check src tests examples bench compat scripts
	$(PY) -m ruff check src tests examples bench compat scripts
	$(PY) -m codespell_lib $(PAGES)

types:
	$(PY) -m mypy

contracts:
	.venv/bin/lint-imports

# Four at a time, the longest first, as many tests wait for processes that they started; types,
# contracts and pages go along. What looks at the clock runs after them, alone.
CLUSTER = tests/runs/cluster
CLUSTER_TIMED = tests/runs/cluster/test_limit.py
STORE = tests/runs/object_store tests/runs/kernel
REAL = tests/real
TRAINING = tests/training/weights tests/instruments/likelihood
CRASH = tests/runs/crash
CRASH_TIMED = tests/runs/crash/test_stop.py tests/runs/crash/test_disk_full.py
TIMED = $(CRASH_TIMED) $(TIMED_FAULTS:%=tests/models/faults/test_%.py) $(CLUSTER_TIMED)
TIMED_FAULTS = adaptive_concurrency retry_after total_deadline upstream_faults
# What a reader or a user would do: pages, examples, packages of others, the self-test.
WHOLE = tests/docs tests/examples tests/api tests/templates tests/validation/self_test tests/validation/conformance
# The slower half of the rest: commands, and what is computed of runs.
COMMANDS = tests/instruments/bbq tests/cli tests/training/debates tests/findings tests/fuzz
# What asks and serves: models, gateway, pages, scorers.
SERVICES = tests/gateway tests/models tests/scorers tests/views
APART = $(COMMANDS) $(SERVICES) $(CLUSTER) $(CRASH) $(STORE) $(REAL) $(TRAINING) $(WHOLE) $(TIMED)

# Several processes share few cores: with threads of its own each would wait for the others.
test: export POLARS_MAX_THREADS = 1
test: export OPENBLAS_NUM_THREADS = 1
test:
	$(MAKE) --jobs=4 --output-sync=target test-others test-services test-commands test-whole test-store test-cluster test-real test-training test-crash types docs contracts
	$(PYTEST) $(TIMED)

test-cluster:
	$(PYTEST) $(CLUSTER) --ignore=$(CLUSTER_TIMED)

test-crash:
	$(PYTEST) $(CRASH) $(CRASH_TIMED:%=--ignore=%)

test-commands:
	$(PYTEST) $(COMMANDS)

test-services:
	$(PYTEST) $(SERVICES) $(TIMED:%=--ignore=%)

test-others:
	$(PYTEST) tests $(APART:%=--ignore=%)

test-whole:
	$(PYTEST) $(WHOLE)

test-real:
	$(PYTEST) $(REAL)

test-store:
	$(PYTEST) $(STORE)

test-training:
	$(PYTEST) $(TRAINING)

# The versions and checksums that CI installs, anew; needs the network.
lock:
	scripts/lock.sh

# What a release was built and tested with, as a CycloneDX list.
sbom:
	$(PY) scripts/sbom.py dist

# The examples against the endpoint that EVENHAND_BASE_URL and EVENHAND_MODEL name.
examples:
	scripts/run_examples.sh

docs:
	$(PY) -m mkdocs build --strict --quiet

# Long measurements: not part of `check`.
bench-kernel:
	$(PY) bench/kernel.py

bench-ray:
	$(PY) bench/ray.py

bench-memory:
	$(PY) bench/memory.py

# Seconds, no endpoint: our loops beside the papers' own. EVENHAND_DATA may name a folder with BBQ.
bench-calls:
	$(PY) bench/calls.py

# A few minutes, no endpoint: what the judge audit finds in judges whose bias is known.
bench-judges:
	POLARS_MAX_THREADS=1 $(PY) bench/malibu_power.py

# Minutes, no endpoint: 1,000 recorded answers through a remedy with three evaluators; none may come
# back worse. EVENHAND_DATA names a folder with the recorded answers.
bench-remedies:
	POLARS_MAX_THREADS=1 OMP_NUM_THREADS=1 $(PY) -m bench.remedies

# Two hours of one core, no endpoint: how often intervals, verdicts and certificates are right where the
# truth is known. EVENHAND_DATA names a folder with BBQ and UnifiedQA's answers.
bench-truth:
	POLARS_MAX_THREADS=1 $(PY) -m bench.truth

# A minute, no endpoint: how often the gate passes a twin and fails a planted shift.
bench-gate:
	POLARS_MAX_THREADS=1 $(PY) -m bench.gate

# Half an hour, no endpoint: how often a gate that may stop early is wrong. EVENHAND_DATA as below.
bench-gate-until:
	POLARS_MAX_THREADS=1 $(PY) -m bench.gate_until

# An hour, no endpoint: how often every command calls an audit without bias biased, and finds a planted
# bias. BY=path goes through the instruments of one path in turn.
bench-null:
	POLARS_MAX_THREADS=1 $(PY) -m bench.null_laboratory --by $(or $(BY),name) --record

# A quarter of an hour, no endpoint: whether outcome, test and interval agree on 10,000 random pages.
bench-pages:
	POLARS_MAX_THREADS=1 $(PY) -m bench.simulated.page_agreement

# Minutes, no endpoint: false alarms of a watch over a thousand years, and how soon it finds a change.
bench-watching:
	$(PY) bench/watching.py

# Some minutes, no endpoint: whether screens, early stopping and means from few labels hold what they
# promise. EVENHAND_DATA names a folder with BBQ, UnifiedQA's answers, HateCheck and ToxiGen.
bench-cheaper:
	POLARS_MAX_THREADS=1 $(PY) -m bench.cheaper

# Half an hour and more, 500 MB of disk, no endpoint: resuming a run of 10⁸ rows before and after its ledger is
# compacted, on a disk and in an S3 server on loopback, with kills in the middle.
bench-ledger:
	$(PY) -m bench.ledger

# No endpoint: what a screen takes on Ray, and what ten million rows cost. EVENHAND_DATA names a folder
# with the Wikipedia talk pages of `audit scorer`.
bench-screen:
	POLARS_MAX_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PY) -m bench.screen

# A minute, no endpoint: what the gateway's screen takes for an answer. EVENHAND_DATA as below.
bench-screen-cost:
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PY) -m bench.screen_cost

# Minutes, no endpoint: where the gateway's default band lies, by texts that were not trained on.
# EVENHAND_DATA names a folder with them.
bench-screen-band:
	OPENBLAS_NUM_THREADS=1 $(PY) -m bench.screen_band

# Minutes, no endpoint: what the gateway costs beside its upstream. --memory and --replicas do more;
# the latter needs a redis-server.
bench-gateway:
	$(PY) -m bench.gateway

# Some ten minutes and 300 MB of disk, no endpoint: a report and a comparison over ten million rows.
bench-findings:
	$(PY) bench/findings_rows.py

# Some minutes and 400 MB of disk, no endpoint: the viewer on a run of a million items.
bench-view:
	$(PY) -m bench.view

# Some minutes with a small model: does a request within a text move a real judge? GGUF names the
# weights; without it SmolLM2, which is at chance as a judge.
bench-injection:
	PATH="$(dir $(abspath $(PY))):$$PATH" scripts/injection.sh runs/injection

# Exports, opened by the tools that they are for, and the plug-in inside of Inspect, from the registry
# in an environment of its own. EVENHAND_DATA names a folder with BBQ.
check-inspect:
	PY="$(PY)" scripts/check_inspect.sh

# The same answers by our wire, the Responses API, LiteLLM and Inspect, in two environments of their
# own from the registry, 2 GB. The model is a stand-in on loopback. EVENHAND_DATA names a folder with BBQ.
check-providers:
	PY="$(PY)" scripts/check_providers.sh

# Some ten minutes and 2 GB of disk: other tools, as installed from the registry, on the conformance
# suite. What another tool breaks is a line of the table, and no failure of this.
bench-conformance:
	scripts/conformance_of_others.sh

# Twenty kills of actors, nodes and drivers under 30 % faults, and twenty without faults.
bench-kills:
	EVENHAND_KILLS=20 $(PY) -m pytest -q -s --timeout 1800 tests/runs/cluster/test_kill.py

# Sixty kills of runs by batches, then 10,000 items of StarDTox by batches and directly.
bench-batch:
	EVENHAND_KILLED_RUNS=20 $(PY) -m pytest -q tests/models/batches/test_kills.py -k random
	POLARS_MAX_THREADS=1 $(PY) -m bench.batch

# A real vLLM server on the CPU, in an environment of its own (3.5 GB), asked through our door.
compat-vllm:
	compat/vllm_server.sh
	$(PY) compat/check_endpoint.py http://127.0.0.1:8100/v1 smollm2-135m-instruct; \
	    status=$$?; compat/vllm_server.sh stop; exit $$status

# Some minutes and 0.6 GB of disk: LiteLLM's real proxy, in an environment of its own, with our
# guardrail in four configurations. What it leaks is a line of the table, and no failure of this.
compat-litellm:
	compat/litellm_proxy.sh
	$(PY) -m compat.check_litellm "$$(compat/litellm_proxy.sh)"
