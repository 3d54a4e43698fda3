"""Measures how language models answer: the rows of figure 2."""

import json
from math import prod
from pathlib import Path

from hopscope.lm.known import KNOWN, cached
from hopscope.lm.results import BenchRun, result_rows
from hopscope.papers.musat.rows import AnswerRow
from hopscope.store.files import reading

MOST_HEAD = 2**27
"""The largest head of a safetensors file that is read, in bytes."""


def answer_rows(run: BenchRun) -> list[AnswerRow]:
    """A row for each kind of question that a model was asked."""
    return [AnswerRow(**row, parameters=size_of(row["model"])) for row in result_rows(run)]


def size_of(model: str) -> int | None:
    """The number of a model's weights; None where it is not known, as of an endpoint."""
    if model in KNOWN:
        return KNOWN[model].parameters
    path = Path(model)
    folder = path if path.is_dir() else cached(model)
    files = sorted(folder.glob("*.safetensors"))
    return sum(map(_weights, files)) if files else None


def _weights(path: Path) -> int:
    """The number of weights in a file, by its head alone."""
    with reading(path), path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        head = json.loads(file.read(min(length, MOST_HEAD)))
    return sum(prod(its["shape"]) for name, its in head.items() if name != "__metadata__")
