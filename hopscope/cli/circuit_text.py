"""Circuits and their emergence in the terminal."""

from hopscope.circuits import Circuit
from hopscope.circuits.emergence import Emergence
from hopscope.cli.output import say, say_json
from hopscope.cli.tables import table
from hopscope.report.account import ACCOUNT_COLUMNS, account_remarks, account_rows
from hopscope.report.emergence import EMERGENCE_COLUMNS, emergence_rows
from hopscope.report.words import (
    COMPONENT_COLUMNS,
    SCORE_COLUMNS,
    circuit_grid,
    component_rows,
    loss_line,
    remarks,
    score_rows,
)


def print_or_say(found: Circuit, *, json: bool) -> None:
    """The circuit in words, or as JSON."""
    if json:
        say_json(found.to_dict())
    else:
        print_circuit(found)
        say()


def print_circuit(found: Circuit) -> None:
    """The verdict, the circuit as a table, and what is known beside it."""
    say("", found.verdict, loss_line(found))
    say("", *circuit_grid(found).splitlines(), "")
    table(COMPONENT_COLUMNS, component_rows(found))
    if found.scores:
        say()
        table(SCORE_COLUMNS, score_rows(found))
    say()
    for line in remarks(found):
        say(line)
    if found.account is not None:
        say("")
        print_account(found)


def print_account(found: Circuit) -> None:
    """What moves in the circuit, arrow by arrow."""
    table(ACCOUNT_COLUMNS, account_rows(found))
    say("", *account_remarks(found))


def print_emergence(story: Emergence) -> None:
    """When each path passed one half, first to last; below, when each hop was learned."""
    table(EMERGENCE_COLUMNS, emergence_rows(story))
