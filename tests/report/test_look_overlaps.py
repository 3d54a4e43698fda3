"""Every figure, one column wide and two: its texts stand inside it, and apart from each other."""

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

import hopscope
from hopscope.circuits import Circuit, attention_maps, exam_of, subject_of
from hopscope.circuits.export import circuitsvis
from hopscope.configs import Retrieval
from hopscope.facts import Role
from hopscope.llm.heads import HeadScores, Route
from hopscope.markov.run import MarkovRun
from hopscope.models.planted import Planted
from hopscope.papers.registry import PAPERS
from hopscope.papers.results_folder import that_came_with_it
from hopscope.report.circuit import circuit_figure
from hopscope.report.comparison import comparison_figure
from hopscope.report.contents import contents_figure
from hopscope.report.curves import loss_curves
from hopscope.report.depth import shared_information
from hopscope.report.emergence import emergence_figure, order_figure
from hopscope.report.heads import heads_figure
from hopscope.report.look import SMALL, Look, Picture, looking
from hopscope.report.maps import example_figure, role_maps_figure
from hopscope.report.markov import heads_figure as lags_figure
from hopscope.report.markov import stages_figure
from hopscope.report.names import model_title
from hopscope.report.table_figures import figures
from hopscope.store import Store
from hopscope.study import compare

SLACK = 0.015
"""Inches by which boxes of texts may meet: they are higher than their letters."""
Make = Callable[[], Mapping[str, Picture]]


def texts(figure: Picture) -> Iterator[tuple[str, np.ndarray]]:
    """What is written in a figure, with left, lower, right and upper end, in inches."""
    with rc_context(figure.look.settings()):
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        beyond = set()
        for axis in figure.findobj(Axis):
            ticks = {id(tick) for tick in axis._update_ticks()}  # those that are drawn
            every = (*axis.get_major_ticks(), *axis.get_minor_ticks())
            off = not axis.axes.axison
            gone = [tick for tick in every if off or id(tick) not in ticks]
            beyond |= {id(axis.label), id(axis.offsetText)} if off else set()
            beyond |= {id(label) for tick in gone for label in (tick.label1, tick.label2)}
        for text in figure.findobj(Text):
            shown = text.get_visible() and text.get_text().strip() and id(text) not in beyond
            if shown:
                box = text.get_window_extent(canvas.get_renderer())
                yield text.get_text(), box.extents / figure.dpi


def trouble(figure: Picture) -> list[str]:
    """Texts that stand in each other's way, or leave the figure."""
    found, size = list(texts(figure)), figure.get_size_inches()
    outside = [
        f"{name!r} leaves the figure"
        for name, box in found
        if box[:2].min() < -SLACK or (box[2:] > size + SLACK).any()
    ]
    crossing = [
        f"{one!r} and {other!r} overlap"
        for number, (one, box) in enumerate(found)
        for other, its in found[number + 1 :]
        if (np.minimum(box[2:], its[2:]) - np.maximum(box[:2], its[:2]) > SLACK).all()
    ]
    return outside + crossing


def test_trouble_is_seen() -> None:
    figure = Picture("", "", (2.0, 1.0))
    for place, name in ((0.5, "one"), (0.52, "other"), (0.98, "far too long")):
        figure.text(place, 0.5, name)
    assert trouble(figure) == ["'far too long' leaves the figure", "'one' and 'other' overlap"]


@pytest.fixture(scope="module")
def commands(known: Planted, circuit: Circuit) -> Make:
    """What every command draws."""
    demo, ngram = hopscope.load("gallery/demo"), hopscope.load("gallery/ngram")
    assert isinstance(ngram, MarkovRun)
    title, story = model_title(demo), demo.emergence(4)
    maps, contents = demo.maps(8), demo.contents(40)
    planted = attention_maps(known.model, known.task, examples=4)
    example = circuitsvis(subject_of(known.model), exam_of(known.task, 1))
    both = compare("gallery/demo", "gallery/planted", Store())
    value = Route(Role("query"), Role("value"), "answer")
    route = (Route(Role("query"), Role("key"), "look-up"), value)
    zero = np.zeros((2, 30, 9))
    scores = HeadScores("smollm2-135m", "f1", route, zero, zero, np.ones(2), zero, zero, 8, 3)
    return lambda: {
        "maps": role_maps_figure(maps, demo.heads_of_circuit(), f"role maps: {title}"),
        "maps of twins": role_maps_figure(planted),
        "example": example_figure(example["attention"], example["tokens"]),
        "circuit": circuit_figure(circuit, of=f"circuit: {title}"),
        "account": circuit_figure(demo.circuit, of=f"circuit: {title}"),
        "circuit by time": circuit_figure(demo.circuit, story, f"circuit: {title}"),
        "emergence": emergence_figure(story, f"emergence: {title}"),
        "order": order_figure(story, f"order: {title}"),
        "contents": contents_figure(contents, f"contents: {title}"),
        "show": loss_curves(demo.run),
        "depth": shared_information(Retrieval(hops=5).graph()),
        "compare": comparison_figure(both),
        "stages": stages_figure(ngram),
        "lags": lags_figure(ngram),
        "heads": heads_figure(scores),
    }


def tables(*targets: str) -> Mapping[str, Picture]:
    """What is drawn of these tables of the repository."""
    folder = that_came_with_it()
    assert folder is not None
    results, drawn = PAPERS.results(folder), {}
    for name in targets:
        table = results.readable(name)
        found = figures(table, results.shown) if table is not None else []
        drawn |= {f"{name}-{short}": figure for short, figure in found}
    return drawn


def in_order(make: Make, columns: Literal[1, 2] | None) -> None:
    with looking(Look(columns=columns)):
        found = make()
    assert {name: lines for name, each in found.items() if (lines := trouble(each))} == {}
    sizes = {text.get_fontsize() for figure in found.values() for text in figure.findobj(Text)}
    assert min(sizes) >= SMALL


def test_texts_of_a_few_figures_stand_apart_and_are_large_enough(circuit: Circuit) -> None:
    def few() -> Mapping[str, Picture]:
        return {
            "circuit": circuit_figure(circuit, of="circuit: planted"),
            "depth": shared_information(Retrieval(hops=5).graph()),
            **tables("musat/depth", "chen/growth"),
        }

    in_order(few, 1)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [None, 1, 2])
def test_texts_of_all_figures_stand_apart_and_are_large_enough(
    commands: Make, columns: Literal[1, 2] | None
) -> None:
    in_order(commands, columns)
    in_order(lambda: tables(*PAPERS.targets), columns)
