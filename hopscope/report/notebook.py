"""What a notebook shows in place of a result: figures with their captions, and tables; and the
figure of a result, wherever it is asked for.

`hopscope.display` asks for it when a result is shown, and not before: a drawing library is loaded
then. A result is known by its class, and by the name of its class alone, so that the rooms of
results are not imported here.
"""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from hopscope.configs.kinds import fetched
from hopscope.errors import ConfigError, HopscopeError
from hopscope.report.look import DARK, LIGHT, Picture
from hopscope.report.saving import HUE, save_figure, theme

VIEWS: Mapping[str, str] = {
    "hopscope.circuits.circuit:Circuit": "hopscope.report.cells:circuit",
    "hopscope.circuits.emergence:Emergence": "hopscope.report.cells:emergence",
    "hopscope.circuits.maps:RoleMaps": "hopscope.report.cells:role_maps",
    "hopscope.circuits.probe:Probe": "hopscope.report.cells:probe",
    "hopscope.circuits.probe:ProbeHistory": "hopscope.report.cells:probe_history",
    "hopscope.llm.heads:HeadScores": "hopscope.report.cells:head_scores",
    "hopscope.llm.mechanism:LlmFindings": "hopscope.report.cells:llm_findings",
    "hopscope.llm.mechanism:MechanismRun": "hopscope.report.run_cells:run",
    "hopscope.llm.run:BenchRun": "hopscope.report.run_cells:run",
    "hopscope.ngram.run:NgramRun": "hopscope.report.run_cells:run",
    "hopscope.papers.claim:Claim": "hopscope.report.run_cells:claim",
    "hopscope.papers.claim:Finding": "hopscope.report.run_cells:finding",
    "hopscope.report.look:Picture": "hopscope.report.cells:figure",
    "hopscope.runs.view:PlainRun": "hopscope.report.run_cells:run",
    "hopscope.store.folder:RunFolder": "hopscope.report.run_cells:folder",
    "hopscope.store.query:Answer": "hopscope.report.run_cells:answer",
    "hopscope.store.query:Question": "hopscope.report.run_cells:question",
    "hopscope.store.store:Store": "hopscope.report.run_cells:store",
    "hopscope.study.comparison:Comparison": "hopscope.report.run_cells:comparison",
    "hopscope.study.run:RunStudy": "hopscope.report.run_cells:study",
    "hopscope.circuits.ranking:Baselines": "hopscope.report.cells:baselines",
    "hopscope.training.run:Run": "hopscope.report.run_cells:run",
}
"""For each class of results, the function that gives what is shown of one, as pieces of HTML."""

PICTURES: Mapping[str, str] = {
    "hopscope.circuits.circuit:Circuit": "hopscope.report.circuit:circuit_figure",
    "hopscope.circuits.emergence:Emergence": "hopscope.report.emergence:emergence_figure",
    "hopscope.circuits.maps:RoleMaps": "hopscope.report.maps:role_maps_figure",
    "hopscope.circuits.probe:Probe": "hopscope.report.probe:probe_figure",
    "hopscope.circuits.probe:ProbeHistory": "hopscope.report.probe:history_figure",
    "hopscope.llm.heads:HeadScores": "hopscope.report.heads:heads_figure",
    "hopscope.llm.mechanism:LlmFindings": "hopscope.report.mechanism:mechanism_figure",
    "hopscope.llm.mechanism:MechanismRun": "hopscope.report.kinds:figure_of",
    "hopscope.llm.run:BenchRun": "hopscope.report.kinds:figure_of",
    "hopscope.ngram.run:NgramRun": "hopscope.report.kinds:figure_of",
    "hopscope.study.comparison:Comparison": "hopscope.report.comparison:comparison_figure",
    "hopscope.circuits.ranking:Baselines": "hopscope.report.baselines:baselines_figure",
    "hopscope.training.run:Run": "hopscope.report.kinds:figure_of",
}
"""For each class of results that has one figure, the function that draws it."""

LIGHTS = ':is([data-jp-theme-light="true"], [data-theme="light"], .vscode-light) .hopscope'
DARKS = ':is([data-jp-theme-light="false"], [data-theme="dark"], .vscode-dark) .hopscope'
"""What notebooks, and pages of documentation, say of the theme that was chosen there."""
SHEET = f"""
.hopscope {{ overflow-x: auto; line-height: 1.5 }}
.hopscope figure {{ margin: .5rem 0 }} .hopscope svg {{ max-width: 100%; height: auto }}
.hopscope figcaption, .hopscope .dim {{ opacity: .75; max-width: 44rem }}
.hopscope td, .hopscope th {{ text-align: left; vertical-align: top; padding: .1rem 1rem .1rem 0 }}
@media (prefers-color-scheme: dark) {{
  .hopscope {{ {theme(DARK)} }} .hopscope image {{ {HUE} }}
}}
{LIGHTS} {{ {theme(LIGHT)} }} {LIGHTS} image {{ filter: none }}
{DARKS} {{ {theme(DARK)} }} {DARKS} image {{ {HUE} }}
"""
"""For what is shown in a notebook, whose own light or dark comes before that of the browser."""


def html(result: object) -> str:
    """What is shown of a result; where that cannot be drawn, why, and its text."""
    try:
        view = _of_class(VIEWS, type(result))
        assert view is not None
        pieces: Sequence[str] = fetched(view)(result)
    except ModuleNotFoundError as error:
        pieces = _as_text(result, f"{error.name} is not installed: pip install {error.name}")
    except HopscopeError as error:
        pieces = _as_text(result, str(error))
    return f'<div class="hopscope"><style>{SHEET}</style>{"".join(pieces)}</div>'


def picture(result: object, path: Path | str | None = None) -> Picture:
    """The figure of a result, written if a path is given; a result that has none, or several, is
    refused.
    """
    draw = _of_class(PICTURES, type(result))
    if draw is None:
        drawn = ", ".join(sorted(name.partition(":")[2] for name in PICTURES))
        raise ConfigError(
            f"there is no single figure of a {type(result).__name__}; there is one of each of "
            f"{drawn}"
        )
    figure: Picture = fetched(draw)(result)
    if path is not None:
        save_figure(figure, path)
    return figure


def _of_class(functions: Mapping[str, str], kind: type[Any]) -> str | None:
    """The function for a class, or for the nearest one that it is made from, if there is one."""
    names = (f"{each.__module__}:{each.__qualname__}" for each in kind.__mro__)
    return next((functions[name] for name in names if name in functions), None)


def _as_text(result: object, why: str) -> list[str]:
    return [f'<p class="dim">{escape(why)}</p>', f"<pre>{escape(str(result))}</pre>"]
