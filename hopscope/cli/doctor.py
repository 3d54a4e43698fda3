"""`hopscope doctor`: is everything there, does it work, and what is to be done if not?"""

from dataclasses import dataclass

from hopscope.cli.arguments import JsonArguments, StoreArguments
from hopscope.cli.health import Check, checks
from hopscope.cli.output import say, say_json
from hopscope.store import Store

COLOURS = {"fine": "32", "note": "33", "wrong": "31"}
"""Green, yellow and red, in the codes of a terminal."""


@dataclass(frozen=True)
class DoctorArguments(StoreArguments, JsonArguments):
    """Look at the installation, this machine and the store; exit code 1 if something is wrong."""


def doctor(chosen: DoctorArguments) -> int:
    found = list(checks(Store(chosen.store)))
    wrong = [check for check in found if check.state == "wrong"]
    if chosen.json:
        say_json([check.to_dict() for check in found])
    else:
        _print(found)
        say("", f"{len(wrong)} of {len(found)} are wrong" if wrong else "nothing is wrong")
    return 1 if wrong else 0


def _print(found: list[Check]) -> None:
    from hopscope.cli.tables import table

    rows = [(check.state, check.name, check.found) for check in found]
    table(("state", "what", "found"), rows, colours=COLOURS)
    todo = [(check.name, check.todo) for check in found if check.todo]
    if todo:
        say()
        table(("what", "to do"), todo)
