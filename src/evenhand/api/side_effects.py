"""Count the benign texts that methods make worse."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack

from evenhand.api import inputs
from evenhand.api.inputs import Model
from evenhand.experiments.request import Watch
from evenhand.experiments.settings import RunOptions, show_settings
from evenhand.experiments.sweep import run_overcorrection
from evenhand.findings.sweep import Sweep
from evenhand.instruments.overcorrection.instrument import USUAL, OverCorrectionOptions
from evenhand.methods import Method
from evenhand.scorers import Scorer


async def overcorrection(
    *,
    model: Model | None = None,
    methods: Sequence[Method | str] = USUAL,
    items: int = 500,
    texts: str | Path | None = None,
    sample_seed: int = 0,
    scorers: Mapping[str, Scorer] | None = None,
    data: str | Path | None = None,
    watch: Watch | None = None,
    **settings: Unpack[RunOptions],
) -> Sweep:
    """Count the benign texts that methods refuse, empty, moralize about, or strip of an identity.

    Every method has a run folder within `out`. Caps are for all methods together.

    Args:
        model: Model that corrects the texts.
        methods: Method names or `Method` objects. Settings follow a name after a colon, joined by
            a plus. Defaults to all that work on texts and need only a chat endpoint.
        items: Number of texts, a third from each set.
        texts: Your own texts instead: JSONL with text, identity, family, template.
        sample_seed: Random seed for the sample.
        scorers: Additional scorers by name.
        data: Dataset directory. Default: `EVENHAND_DATA`.
        watch: Receives progress events.
        **settings: Settings of the run, of which `out` is required: `RunOptions`.

    Returns:
        The report of each method, and its comparison with the plain prompt.

    Raises:
        UserError: If a method repairs no texts, or a cap stopped the runs.

    Example:
        >>> swept = evenhand.overcorrection(methods=["default", "fairness"], model=model,
        ...                                 out="runs/benign")
        >>> swept["fairness"].report["made_worse"].value
    """
    ended, swept = await run_overcorrection(
        methods,
        OverCorrectionOptions(items=items, texts=inputs.path_of(texts), sample_seed=sample_seed),
        inputs.run_models(model, scorers, data),
        inputs.settings_of(settings),
        watch or Watch(),
    )
    inputs.whole(ended)
    assert swept is not None  # the runs are whole
    return swept


show_settings(overcorrection)
