"""What a notebook shows in place of a result: figures with their captions, and tables.

`hopscope.display` asks for it when a result is shown, and not before: a drawing library is loaded
then. A result is known by its class, and by the name of its class alone, so that the rooms of
results are not imported here.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from hopscope.configs.kinds import fetched
from hopscope.errors import HopscopeError
from hopscope.report.look import DARK, LIGHT
from hopscope.report.saving import HUE, theme

VIEWS: Mapping[str, str] = {
    "hopscope.circuits.circuit:Circuit": "hopscope.report.cells:circuit",
    "hopscope.circuits.emergence:Emergence": "hopscope.report.cells:emergence",
    "hopscope.circuits.maps:RoleMaps": "hopscope.report.cells:role_maps",
    "hopscope.llm.heads:HeadScores": "hopscope.report.cells:head_scores",
    "hopscope.llm.mechanism:LlmFindings": "hopscope.report.cells:llm_findings",
    "hopscope.llm.mechanism:MechanismRun": "hopscope.report.run_cells:run",
    "hopscope.llm.run:BenchRun": "hopscope.report.run_cells:run",
    "hopscope.markov.run:MarkovRun": "hopscope.report.run_cells:run",
    "hopscope.papers.claim:Claim": "hopscope.report.run_cells:claim",
    "hopscope.papers.claim:Finding": "hopscope.report.run_cells:finding",
    "hopscope.report.look:Picture": "hopscope.report.cells:figure",
    "hopscope.runs.view:PlainRun": "hopscope.report.run_cells:run",
    "hopscope.store.folder:RunFolder": "hopscope.report.run_cells:folder",
    "hopscope.store.query:Answer": "hopscope.report.run_cells:answer",
    "hopscope.store.question:Question": "hopscope.report.run_cells:question",
    "hopscope.store.store:Store": "hopscope.report.run_cells:store",
    "hopscope.study.comparison:Comparison": "hopscope.report.run_cells:comparison",
    "hopscope.study.study:Study": "hopscope.report.run_cells:study",
    "hopscope.tracing.contents:Contents": "hopscope.report.cells:contents",
    "hopscope.tracing.contents_story:ContentsStory": "hopscope.report.cells:contents_story",
    "hopscope.tracing.ranking:Baselines": "hopscope.report.cells:baselines",
    "hopscope.training.run:Run": "hopscope.report.run_cells:run",
}
"""For each class of results, the function that gives what is shown of one, as pieces of HTML."""

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
        pieces: Sequence[str] = fetched(_view_of(type(result)))(result)
    except ModuleNotFoundError as error:
        pieces = _as_text(result, f"{error.name} is not installed: pip install {error.name}")
    except HopscopeError as error:
        pieces = _as_text(result, str(error))
    return f'<div class="hopscope"><style>{SHEET}</style>{"".join(pieces)}</div>'


def _view_of(kind: type[Any]) -> str:
    """The function for a class, or for the nearest one that it is made from."""
    names = (f"{each.__module__}:{each.__qualname__}" for each in kind.__mro__)
    return next(VIEWS[name] for name in names if name in VIEWS)


def _as_text(result: object, why: str) -> list[str]:
    return [f'<p class="dim">{escape(why)}</p>', f"<pre>{escape(str(result))}</pre>"]
