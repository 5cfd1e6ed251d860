"""The fields of Every Eval Ever 0.3.0 as its schema states them, in a form of our own: what must be
there, of which type, and which words a field may hold. Written by reading the schema, which is not
carried here; where a copy of it is at hand, a test reads that as well."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Texts = dict[str, str]
End = float | Literal["Infinity", "-Infinity"]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class Source(_Strict):
    source_name: str
    source_type: Literal["documentation", "evaluation_run"]
    source_organization_name: str
    evaluator_relationship: Literal["first_party", "third_party", "collaborative", "other"]
    additional_details: Texts


class Library(_Strict):
    name: str
    version: str


class ModelDetails(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")
    __pydantic_extra__: Texts
    deployment_type: Literal["self_deployed", "externally_managed", "unknown"]
    model_availability: Literal["open_weights", "closed_weights", "unknown"]


class Model(_Strict):
    name: str
    id: str
    additional_details: ModelDetails


class Data(_Strict):
    dataset_name: str
    source_type: Literal["other"]
    additional_details: Texts


class Metric(_Strict):
    evaluation_description: str
    metric_id: str
    metric_name: str
    metric_unit: str
    lower_is_better: bool
    score_type: Literal["continuous"]  # for which both ends must be given
    min_score: End
    max_score: End
    additional_details: Texts = {}


class Interval(_Strict):
    lower: float
    upper: float
    confidence_level: Annotated[float, Field(ge=0, le=1)]
    method: str


class Uncertainty(_Strict):
    confidence_interval: Interval | None = None
    num_samples: int


class Score(_Strict):
    score: float
    details: Texts
    uncertainty: Uncertainty


class Result(_Strict):
    evaluation_result_id: str
    evaluation_name: str
    source_data: Data
    metric_config: Metric
    score_details: Score


class Record(_Strict):
    schema_version: Literal["0.3.0"]
    evaluation_id: str
    evaluation_timestamp: str
    retrieved_timestamp: Annotated[str, Field(pattern=r"^\d+$")]
    source_metadata: Source
    model_info: Model
    eval_library: Library
    evaluation_results: list[Result]
