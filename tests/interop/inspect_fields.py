"""The fields of Inspect's log, format 2, as inspect_ai 0.3.285 reads them, in a form of our own:
what must be there, and of which type. Its package cannot be installed beside ours; `make
check-inspect` opens an export with its own reader."""

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

Said = dict[str, Any]
Time = Annotated[AwareDatetime, Field(strict=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class Usage(_Strict):
    input_tokens: int
    output_tokens: int
    total_tokens: int


class Message(_Strict):
    role: Literal["system", "user", "assistant"]
    content: str
    model: str | None = None
    source: Literal["input", "generate", "operator"] | None = None
    metadata: Said | None = None


class Score(_Strict):
    value: str | int | float | bool
    answer: str | None = None
    explanation: str | None = None
    reason: str | None = None


class Error(_Strict):
    message: str
    traceback: str
    traceback_ansi: str


class Choice(_Strict):
    message: Message
    stop_reason: Literal["stop", "max_tokens", "content_filter", "unknown"]


class Output(_Strict):
    model: str
    choices: list[Choice]
    completion: str


class _AnySample(_Strict):
    id: str
    epoch: Literal[1]
    input: str
    choices: list[str] | None
    target: str
    scores: dict[str, Score] | None
    metadata: Said
    model_usage: dict[str, Usage]
    role_usage: dict[str, Usage]
    total_time: float | int
    turn_count: int
    started_at: Time | None = None
    completed_at: Time | None = None


class Sample(_AnySample):
    messages: list[Message]
    output: Output
    error: Error | None = None


class Listed(_AnySample):
    error: str | None
    completed: Literal[True]
    message_count: int


class Dataset(_Strict):
    name: str
    samples: int
    sample_ids: list[str]
    shuffled: bool


class Eval(_Strict):
    eval_id: str
    run_id: str
    task_id: str
    created: Time
    task: str
    task_version: str
    solver: str
    solver_args: Said
    tags: list[str]
    dataset: Dataset
    model: str
    config: Said
    packages: dict[str, str]
    metadata: Said
    scorers: list[dict[str, str]]


class Metric(_Strict):
    name: str
    value: float | int


class Result(_Strict):
    name: str
    scorer: str
    scored_samples: int | None = None
    unscored_samples: int | None = None
    metrics: dict[str, Metric]
    metadata: Said


class Results(_Strict):
    total_samples: int
    completed_samples: int
    logged_samples: int
    scores: list[Result]
    metadata: Said


class Stats(_Strict):
    started_at: Time | Literal[""]
    completed_at: Time | Literal[""]
    model_usage: dict[str, Usage]
    role_usage: dict[str, Usage]


class Header(_Strict):
    version: Literal[2]
    eval: Eval
    plan: Said
    status: Literal["success", "cancelled"]
    results: Results
    stats: Stats
