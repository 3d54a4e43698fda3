"""A piece of a result besides its figure: a table, or lines of text.

The terminal prints pieces, and notebooks show them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hopscope.configs.kinds import fetched

if TYPE_CHECKING:
    from hopscope.plots.look import Picture


@dataclass(frozen=True)
class Piece:
    """A table with a line for each row, and texts below it; both may be missing."""

    title: str = ""
    """The title of the table. In a notebook a piece with a title is folded."""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    lines: Sequence[str] = ()
    figure: "Callable[[], Picture] | None" = None
    """A figure that notebooks show here."""


SHOWN: Mapping[str, tuple[str | None, str | None]] = {
    "hopscope.circuits.ablator:Ablations": ("words:ablation_pieces", "ablations:ablations_figure"),
    "hopscope.circuits.circuit:Circuit": ("words:circuit_pieces", "circuit:circuit_figure"),
    "hopscope.circuits.emergence:Emergence": (
        "words:emergence_pieces",
        "emergence:emergence_figure",
    ),
    "hopscope.circuits.maps:RoleMaps": (None, "maps:role_maps_figure"),
    "hopscope.circuits.probe:Probe": ("words:probe_pieces", "probe:probe_figure"),
    "hopscope.circuits.probe:ProbeHistory": ("words:history_pieces", "probe:history_figure"),
    "hopscope.circuits.ranking:Baselines": ("words:baselines_pieces", "baselines:baselines_figure"),
    "hopscope.lm.heads:HeadScores": (None, "lm:heads_figure"),
    "hopscope.lm.findings:LmFindings": ("lm_words:findings_pieces", "lm_circuit:lm_circuit_figure"),
    "hopscope.lm.findings:LmCircuitRun": ("pieces:run", "notebook:figure_of"),
    "hopscope.lm.results:BenchRun": ("pieces:run", "notebook:figure_of"),
    "hopscope.ngram.run:NgramRun": ("pieces:run", "notebook:figure_of"),
    "hopscope.papers.claim:Claim": ("pieces:claim", None),
    "hopscope.papers.judge:Finding": ("pieces:finding", None),
    "hopscope.runs.view:PlainRun": ("pieces:run", None),
    "hopscope.store.folder:RunFolder": ("pieces:folder", None),
    "hopscope.store.query:Answer": ("pieces:answer", None),
    "hopscope.store.query:SqlQuery": ("pieces:sql_query", None),
    "hopscope.store.store:Store": ("pieces:store", None),
    "hopscope.study.circuits:Circuits": ("pieces:circuits", None),
    "hopscope.study.comparison:Comparison": ("pieces:comparison", "curves:comparison_figure"),
    "hopscope.study.run:RunStudy": ("pieces:study", None),
    "hopscope.training.run:Run": ("pieces:run", "notebook:figure_of"),
}
"""For each class of results (by name, so that it is not imported here) the function that returns
its pieces, and the function that draws its figure, as module:function of hopscope.plots.
"""


def pieces_of(result: object) -> list[Piece]:
    """Return the pieces of a result of any class."""
    view, _ = entry_of(result)
    pieces: list[Piece] = of_plots(view)(result) if view else []
    return pieces


def entry_of(result: object) -> tuple[str | None, str | None]:
    """Return the entry in SHOWN of the result's class or its nearest base class."""
    names = (f"{each.__module__}:{each.__qualname__}" for each in type(result).__mro__)
    return next((SHOWN[name] for name in names if name in SHOWN), (None, None))


def of_plots(name: str) -> Any:
    """Import a function of hopscope.plots, named as module:function."""
    return fetched(f"hopscope.plots.{name}")
