"""What a notebook shows of circuits, of what they move, and of when they appeared."""

from collections.abc import Sequence
from html import escape

from hopscope.circuits import Circuit, RoleMaps
from hopscope.circuits.emergence import Emergence
from hopscope.circuits.probe import Probe, ProbeHistory
from hopscope.circuits.ranking import Baselines
from hopscope.llm.heads import HeadScores
from hopscope.llm.mechanism import LlmFindings
from hopscope.report.account import ACCOUNT_COLUMNS, account_remarks, account_rows
from hopscope.report.baselines import baselines_figure, baselines_rows
from hopscope.report.circuit import circuit_figure
from hopscope.report.emergence import EMERGENCE_COLUMNS, emergence_figure, emergence_rows
from hopscope.report.heads import heads_figure
from hopscope.report.look import Picture
from hopscope.report.maps import role_maps_figure
from hopscope.report.mechanism import mechanism_figure, role_rows
from hopscope.report.page import figure_html, list_html, more_html, table_html
from hopscope.report.probe import (
    added_rows,
    history_figure,
    history_rows,
    probe_figure,
    probe_remarks,
    probe_rows,
)
from hopscope.report.words import (
    COMPONENT_COLUMNS,
    SCORE_COLUMNS,
    component_rows,
    loss_line,
    remarks,
    score_rows,
)


def figure(shown: Picture) -> Sequence[str]:
    return [figure_html(shown)]


def role_maps(maps: RoleMaps) -> Sequence[str]:
    return [figure_html(role_maps_figure(maps))]


def circuit(found: Circuit) -> Sequence[str]:
    pieces = [
        figure_html(circuit_figure(found)),
        f"<p>{escape(found.verdict)}</p>",
        f"<p>{loss_line(found)}</p>",
        more_html("each component", table_html(COMPONENT_COLUMNS, component_rows(found))),
    ]
    if found.scores:
        scores = table_html(SCORE_COLUMNS, score_rows(found))
        pieces.append(more_html("recovered and agreement", scores))
    if found.account is not None:
        carried = table_html(ACCOUNT_COLUMNS, account_rows(found))
        pieces.append(more_html("what each path moves", carried))
    return [*pieces, more_html("remarks", list_html([*remarks(found), *account_remarks(found)]))]


def emergence(story: Emergence) -> Sequence[str]:
    rows = table_html(EMERGENCE_COLUMNS, emergence_rows(story))
    return [figure_html(emergence_figure(story)), more_html("each path and hop", rows)]


def probe(found: Probe) -> Sequence[str]:
    columns, rows = probe_rows(found)
    added = added_rows(found)
    pieces = [
        figure_html(probe_figure(found)),
        list_html(probe_remarks(found)),
        more_html("by layer and role", table_html(columns, rows)),
    ]
    if added:
        table = table_html(("head", "adds to", "symbols"), added)
        pieces.append(more_html("symbols that each head adds", table))
    return pieces


def probe_history(history: ProbeHistory) -> Sequence[str]:
    rows = table_html(("role", "symbol", "decodable from step"), history_rows(history))
    return [
        figure_html(history_figure(history)),
        more_html("when each symbol became decodable", rows),
    ]


def baselines(found: Baselines) -> Sequence[str]:
    return [figure_html(baselines_figure(found)), table_html(*baselines_rows(found))]


def head_scores(scores: HeadScores) -> Sequence[str]:
    return [figure_html(heads_figure(scores))]


def llm_findings(found: LlmFindings) -> Sequence[str]:
    said = list_html(found.verdict())
    return [figure_html(mechanism_figure(found)), said, table_html(*role_rows(found))]
