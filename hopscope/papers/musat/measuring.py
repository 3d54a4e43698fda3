"""How a complete run becomes rows, a function for each kind of them.

What they need is imported when they are called: the list of targets is there without torch.
"""

from hopscope.papers.musat.rows import (
    AnswerRow,
    ChangedRow,
    CircuitRow,
    DepthRow,
    LossRow,
    PlaceRow,
    PlantedRow,
    ReadingRow,
)
from hopscope.papers.table import Protocol
from hopscope.store import RunFolder


def depth(protocol: Protocol) -> list[DepthRow | PlantedRow]:
    from hopscope.papers.musat.measure_depth import depth_rows

    return depth_rows(protocol)


def losses(folder: RunFolder, _: Protocol) -> list[LossRow]:
    from hopscope.papers.musat.measure_runs import loss_rows
    from hopscope.training import Run

    return loss_rows(Run(folder))


def circuits(folder: RunFolder, _: Protocol) -> list[CircuitRow]:
    from hopscope.papers.musat.measure_runs import circuit_row
    from hopscope.training import Run

    return [circuit_row(Run(folder))]


def emergence(folder: RunFolder, _: Protocol) -> list[CircuitRow]:
    from hopscope.papers.musat.measure_runs import emergence_row
    from hopscope.training import Run

    return [emergence_row(Run(folder))]


def under_a_reading(folder: RunFolder, _: Protocol) -> list[ReadingRow]:
    from hopscope.papers.musat.measure_runs import reading_row
    from hopscope.training import Run

    return [reading_row(Run(folder))]


def places(folder: RunFolder, _: Protocol) -> list[PlaceRow]:
    from hopscope.papers.musat.measure_places import place_rows
    from hopscope.training import Run

    return place_rows(Run(folder))


def answers(folder: RunFolder, _: Protocol) -> list[AnswerRow]:
    from hopscope.papers.musat.measure_answers import answer_rows

    return answer_rows(folder)


def changed(folder: RunFolder, protocol: Protocol) -> list[ChangedRow]:
    from hopscope.papers.musat.measure_changed import CHECK_EVERY, STEPS, changed_rows
    from hopscope.training import Run

    return changed_rows(Run(folder), CHECK_EVERY if protocol == "smoke" else STEPS)
