"""What a notebook shows of circuits, of what they move, and of when they appeared."""

from collections.abc import Sequence

from hopscope.circuits import Circuit, RoleMaps
from hopscope.circuits.emergence import Emergence
from hopscope.circuits.ranking import Baselines
from hopscope.llm.heads import HeadScores
from hopscope.llm.mechanism import LlmFindings
from hopscope.report.account import ACCOUNT_COLUMNS, account_remarks, account_rows
from hopscope.report.baselines import baselines_figure, baselines_rows
from hopscope.report.circuit import circuit_figure
from hopscope.report.contents import (
    brought_rows,
    contents_figure,
    contents_remarks,
    contents_rows,
    story_figure,
    story_rows,
)
from hopscope.report.emergence import EMERGENCE_COLUMNS, emergence_figure, emergence_rows
from hopscope.report.heads import heads_figure
from hopscope.report.look import Picture
from hopscope.report.maps import role_maps_figure
from hopscope.report.mechanism import mechanism_figure, role_rows
from hopscope.report.page import figure_html, list_html, more_html, table_html
from hopscope.report.words import PART_COLUMNS, loss_line, part_rows, remarks
from hopscope.tracing.contents import Contents
from hopscope.tracing.contents_story import ContentsStory


def figure(shown: Picture) -> Sequence[str]:
    return [figure_html(shown)]


def role_maps(maps: RoleMaps) -> Sequence[str]:
    return [figure_html(role_maps_figure(maps))]


def circuit(found: Circuit) -> Sequence[str]:
    pieces = [
        figure_html(circuit_figure(found)),
        f"<p>{loss_line(found)}</p>",
        more_html("each part", table_html(PART_COLUMNS, part_rows(found))),
    ]
    if found.account is not None:
        carried = table_html(ACCOUNT_COLUMNS, account_rows(found))
        pieces.append(more_html("what each arrow carries", carried))
    return [*pieces, more_html("remarks", list_html([*remarks(found), *account_remarks(found)]))]


def emergence(story: Emergence) -> Sequence[str]:
    rows = table_html(EMERGENCE_COLUMNS, emergence_rows(story))
    return [figure_html(emergence_figure(story)), more_html("each path and hop", rows)]


def contents(found: Contents) -> Sequence[str]:
    columns, rows = contents_rows(found)
    brought = brought_rows(found)
    pieces = [
        figure_html(contents_figure(found)),
        list_html(contents_remarks(found)),
        more_html("by layer and role", table_html(columns, rows)),
    ]
    if brought:
        table = table_html(("head", "brings to", "symbols"), brought)
        pieces.append(more_html("what each head brings", table))
    return pieces


def contents_story(story: ContentsStory) -> Sequence[str]:
    rows = table_html(("role", "comes to hold", "at step"), story_rows(story))
    return [figure_html(story_figure(story)), more_html("when each role came to hold what", rows)]


def baselines(found: Baselines) -> Sequence[str]:
    return [figure_html(baselines_figure(found)), table_html(*baselines_rows(found))]


def head_scores(scores: HeadScores) -> Sequence[str]:
    return [figure_html(heads_figure(scores))]


def llm_findings(found: LlmFindings) -> Sequence[str]:
    said = list_html(found.verdict())
    return [figure_html(mechanism_figure(found)), said, table_html(*role_rows(found))]
