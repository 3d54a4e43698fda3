"""The story of one model as a page: what it learned, how it works, and when that appeared."""

from collections.abc import Collection
from html import escape

from hopscope.circuits import Circuit, RoleMaps
from hopscope.circuits.emergence import Emergence
from hopscope.report.circuit import circuit_figure
from hopscope.report.curves import loss_curves
from hopscope.report.emergence import emergence_figure, order_figure
from hopscope.report.maps import role_maps_figure
from hopscope.report.names import run_title
from hopscope.report.page import Section, figure_html, list_html, page, table_html
from hopscope.report.words import COMPONENT_COLUMNS, component_rows, loss_line, remarks
from hopscope.training import Run


def story_page(run: Run, circuit: Circuit, story: Emergence, maps: RoleMaps) -> str:
    """Losses, circuit, emergence and attention of a run's model."""
    task, model = run.recipe.task, run.recipe.model
    heads = f"{model.layers} layers of {model.heads} heads"
    return page(
        f"hopscope: {run_title(run.folder)}",
        f"Task {task.kind}, {len(story.losses[0])} hops; {heads}; "
        f"{run.recipe.training.steps:,} steps.",
        [
            _losses(run),
            _circuit(circuit, story),
            _emergence(story),
            _attention(maps, {head for component in circuit.components for head in component.at}),
        ],
    )


def _losses(run: Run) -> Section:
    final = run.final_losses()
    asked = run.recipe.task.asked_hops()
    rows = [(f"x{n}", f"{each.mean():.4f}") for n, each in zip(asked, final.T, strict=True)]
    return Section(
        "What it learned",
        "The error on each symbol of the chain during training. Guessing among the chains stays at "
        "the dotted line; the hops are learned one after the other.",
        [
            figure_html(loss_curves(run)),
            table_html(("hop", "final validation loss"), rows),
        ],
    )


def _circuit(circuit: Circuit, story: Emergence) -> Section:
    return Section(
        "How it works",
        "Every head's attention was replaced by what is drawn here, and nothing else; the loss "
        "says how much of the model that explains. q is the query, k0 and v0 key and value of "
        "the first hop. A component moves content if more than 5 % of the gap between everything "
        "ablated and the model is lost without it; it routes if that is lost only where the heads "
        "compute their attention themselves.",
        [
            figure_html(circuit_figure(circuit, story)),
            f"<p>{escape(circuit.verdict)}</p>",
            f"<p>{loss_line(circuit)}</p>",
            table_html(COMPONENT_COLUMNS, component_rows(circuit)),
            list_html(remarks(circuit)),
        ],
    )


def _emergence(story: Emergence) -> Section:
    rows = [
        (
            f"{path.layer}.{path.head}",
            f"{path.source} → {path.reader}",
            "never" if step is None else f"{step:,.0f}",
        )
        for path, step in story.order
    ]
    return Section(
        "When it appeared",
        "Mean attention along every path of the circuit at each checkpoint, above the losses at "
        "the same steps. A path has emerged when attention passes one half.",
        [
            figure_html(emergence_figure(story)),
            figure_html(order_figure(story)),
            table_html(("head", "path", "passes 0.5 at step"), rows),
        ],
    )


def _attention(maps: RoleMaps, used: Collection[tuple[int, int]]) -> Section:
    return Section(
        "Where every head looks",
        "Mean attention from each role (row) to each role (column), in the own chain and in the "
        "others; heads of the circuit are marked.",
        [figure_html(role_maps_figure(maps, used))],
    )
