"""Complete runs of models in this process; and an answer by reading nothing but the text."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from hopscope.configs import LmBench, LmCircuit
from hopscope.lm.bench import stepper_of
from hopscope.lm.circuit import search
from hopscope.runs.runner import prepared
from hopscope.store import RunFolder, Store


def ask(bench: LmBench, model: Callable[[], Any], store: Path) -> RunFolder:
    """The complete run; `model` is called only if a question has no answer."""
    return prepared(bench, lambda: partial(stepper_of, bench, model()), store)


def find_circuit(recipe: LmCircuit, model: Callable[[], Any], store: Store | Path) -> RunFolder:
    """The complete run; `model` is called only if there is something to measure."""
    return prepared(recipe, lambda: partial(search, recipe, model()), store)


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
