"""Complete runs of models in this process; and an answer by reading nothing but the text."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from calling import watcher

from hopscope.configs import LmBench, LmCircuit
from hopscope.errors import Interrupted
from hopscope.lm.bench import stepper_of
from hopscope.lm.circuit import search
from hopscope.lm.model import LanguageModel
from hopscope.runs.runner import prepared
from hopscope.runs.stop import Stop
from hopscope.store import RunFolder, Store


def ask(bench: LmBench, model: Callable[[], Any], store: Path) -> RunFolder:
    """The complete run; `model` is called only if a question has no answer."""
    return prepared(bench, lambda: partial(stepper_of, bench, model()), store)


def find_circuit(recipe: LmCircuit, model: Callable[[], Any], store: Store | Path) -> RunFolder:
    """The complete run; `model` is called only if there is something to measure."""
    return prepared(recipe, lambda: partial(search, recipe, model()), store)


def stopped(recipe: LmCircuit, model: LanguageModel, store: Store, step: int) -> None:
    """A run that is asked to stop after a number of questions."""
    stop = Stop()
    shown = watcher(advance=lambda done, _: stop.ask("test") if done >= step else None)
    with pytest.raises(Interrupted):
        prepared(recipe, lambda: partial(search, recipe, model), store, shown, stop)


@contextmanager
def in_one_piece() -> Iterator[None]:
    """All questions of a circuit's run are measured together, which takes half as long."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("circuit", "patching"):
            patch.setattr(f"hopscope.lm.{module}.PIECE", 100)
        yield


def solved(prompt: str) -> str:
    """The answer from the text alone, by following the facts backward from the question."""
    *lines, ask = prompt.split("\n")
    if ask.startswith("What is"):
        return _evaluated(dict(line.split(" = ") for line in lines), ask)
    if ask.startswith("Who has"):
        return _carrier(lines, ask)
    who = re.match(r"Where does (.+) live\?", ask)[1]
    if any(" is " in line for line in lines):
        return _country(prompt, who)
    home = dict(re.match(r"(.+) lives (?:with|in) (.+)", line).groups() for line in lines)
    while who in home:
        who = home[who]
    return who


def _evaluated(value: dict[str, str], ask: str) -> str:
    asked = re.match(r"What is the value of (.+?)\? Say", ask)[1]
    if call := re.fullmatch(r"(.+)\((.+)\)", asked):
        return value[f"{value[call[1]]}({value[call[2]]})"]
    while asked in value:
        asked = value[asked]
    return asked


def _carrier(lines: list[str], ask: str) -> str:
    """Who has the disease: every sentence has its key last and its value first."""
    come_from = {}
    for line in lines:
        value, *_, key = line.rstrip(".").split()
        come_from[key.lower()] = re.sub("ists$", "ism", re.sub("ns$", "", value)).lower()
    found = re.match(r"Who has (.+)\?", ask)[1].lower()
    while found in come_from:
        found = come_from[found]
    return found.title()


def _country(prompt: str, who: str) -> str:
    def told(pattern: str) -> str:
        return re.search(f"(?im)^{pattern}", prompt)[1]

    job = told(rf"{who} works as an? (\w+)\.")
    relation = told(rf"{job}s live with their (\w+)s\.")
    relative = told(rf"{who}s {relation} is (\w+)\.")
    return told(rf"{relative} lives in (\w+)\.")
