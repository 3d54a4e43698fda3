"""The figure of a run, whatever its kind: what its losses, stages or answers came to."""

from collections.abc import Mapping
from typing import Any

from hopscope.configs.kinds import fetched
from hopscope.errors import ConfigError

FIGURES: Mapping[str, str] = {
    "facts": "hopscope.report.curves:loss_curves",
    "ngram": "hopscope.report.ngram:stages_figure",
    "llm": "hopscope.report.llm:bench_figure",
    "llm-mechanism": "hopscope.report.mechanism:run_figure",
}
"""For each kind of run that has a figure, the function that draws it."""


def figure_of(run: Any) -> Any:
    """The figure of a run; a kind that has none is refused."""
    kind = run.recipe.kind
    if kind not in FIGURES:
        raise ConfigError(f"there is no figure of a run of kind {kind}")
    return fetched(FIGURES[kind])(run)
