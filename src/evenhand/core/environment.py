"""Environment variables that have to be read or set before anything large is imported, Ray's, and
those of the machine that runs a check."""

import os
import shlex


def base_url() -> str | None:
    """EVENHAND_BASE_URL: the address of the default endpoint, if it is set."""
    return os.environ.get("EVENHAND_BASE_URL") or None


def forget_ray_auth_mode() -> None:
    """Leave it to Ray whether its cluster wants a token; for one of this machine it does."""
    os.environ.pop("RAY_AUTH_MODE", None)


def ray_auth_mode() -> str | None:
    """What Ray has set for the cluster that it started."""
    return os.environ.get("RAY_AUTH_MODE")


def one_thread_for_matrices() -> None:
    """Let numpy multiply matrices with one thread, unless OPENBLAS_NUM_THREADS says otherwise.

    Our choice: ours have some thousand numbers, of which two threads make no faster work, but wait
    for each other busily: a test of sign flips took five times as long. It counts for numpy alone,
    and only before numpy is imported.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def on_github() -> bool:
    """GITHUB_ACTIONS: what is printed is read for commands, such as annotations."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def github_summary() -> str | None:
    """GITHUB_STEP_SUMMARY: the file whose Markdown is shown on the page of a job."""
    return os.environ.get("GITHUB_STEP_SUMMARY") or None


def any_inspect_grader() -> bool:
    """EVENHAND_INSPECT_GRADERS: with "any", a model may grade in Inspect without a certificate."""
    return os.environ.get("EVENHAND_INSPECT_GRADERS") == "any"


def vllm_arguments() -> list[str]:
    """Return EVENHAND_VLLM_ARGS: additional arguments of `vllm run-batch`."""
    return shlex.split(os.environ.get("EVENHAND_VLLM_ARGS", ""))


def ray_cluster() -> str | None:
    """The cluster that RAY_ADDRESS names, as it does within a Ray job; None: start one here."""
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # else Ray warns at every start
    return os.environ.get("RAY_ADDRESS")


def use_one_blas_thread() -> None:
    """For processes that start from now on, unless the variable says otherwise."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def provider_keys() -> list[str]:
    """What looks by its name like a key of a provider, which a library may send by itself."""
    ends = ("_API_KEY", "_ACCESS_KEY", "_TOKEN")
    return [value for name, value in os.environ.items() if name.endswith(ends)]


def keep_litellm_to_itself() -> None:
    """LITELLM_MODE and LITELLM_LOCAL_MODEL_COST_MAP, read at its import: without a `.env` of the
    current folder, which may have come from somebody else, and without a call to GitHub."""
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
