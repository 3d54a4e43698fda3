"""The rows of a language model's run: one line of JSON for each question, in the run's files.

Lines are committed in parts; at the end all parts are merged into one file.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hopscope.configs import LmCircuit
from hopscope.display import plain
from hopscope.errors import ConfigError, RunDamaged, RunMismatch
from hopscope.runs.stepper import StepLosses
from hopscope.store import RunFolder

if TYPE_CHECKING:
    import torch

DIGITS = 6
ROWS = "rows"
"""The folder of the files of a circuit's run."""

SavedRow = dict[str, Any]
"""The measurements of one question."""


def read_lines(
    folder: RunFolder, name: str, parse: Callable[[str], tuple[tuple[int, int], SavedRow]]
) -> list[SavedRow]:
    """Read the lines of the files in NAME/ of a run, in order.

    `parse` returns a line's place (group and number of its question) and its row; if it raises an
    error, or if a question occurs twice, this raises RunDamaged.
    """

    def read() -> list[SavedRow]:
        rows: dict[tuple[int, int], SavedRow] = {}
        for file in folder.files(f"{name}/"):
            try:
                new = [parse(line) for line in folder.read(file).decode().splitlines()]
                why = "" if len({*rows, *dict(new)}) == len(rows) + len(new) else "a question twice"
            except (ConfigError, ValueError, LookupError, TypeError) as error:
                why = str(error)
            if why:
                raise RunDamaged(
                    f"{folder.path / file} has a line that this run did not write ({why}): "
                    f"restore it from a copy, or `{folder.command('rm')}` and measure again"
                )
            rows |= new
        return [rows[place] for place in sorted(rows)]

    return folder.snapshot(read)


class RowStepper:
    """The stepper of a run that measures questions in pieces, with a row for each question."""

    def __init__(
        self,
        folder: RunFolder,
        name: str,
        read: Callable[[RunFolder], list[SavedRow]],
        device: "torch.device",
        precision: str,
    ) -> None:
        self.folder, self.name, self.read = folder, name, read
        self.device, self.precision = device, precision
        self.rows = read(folder)
        self.step = self.saved = len(self.rows)
        self.planned = range(1, folder.recipe.steps + 1)
        self.pieces: Iterator[list[SavedRow]] = iter(())
        """Yields the rows of the next pieces; set after construction."""
        self.beside: Mapping[str, bytes] = {}
        """Files that are committed with the rows."""

    def advance(self) -> StepLosses:
        """Measure a piece of the questions."""
        new = next(self.pieces)
        self.rows += new
        self.step += len(new)
        return {}

    def files(self) -> Mapping[str, bytes]:
        """The rows since the last commit."""
        before, self.saved = self.saved, self.step
        rows = {f"{self.name}/part-{before:08d}.jsonl": _lines(self.rows[before:])}
        return {**self.beside, **rows}

    def merged(self) -> tuple[Mapping[str, bytes], tuple[str, ...]]:
        """All rows as one file, and the names of the parts that it replaces."""
        parts = tuple(self.folder.files(f"{self.name}/part-"))
        return {f"{self.name}/all.jsonl": _lines(self.read(self.folder))}, parts


def other_weights(folder: RunFolder, model: str, again: str) -> RunMismatch:
    """Return the error for a run that was begun with other weights than the model has now."""
    return RunMismatch(
        f"{folder.name} was begun with other weights than {model} has now: "
        f"`{folder.command('rm')}` and {again} again"
    )


def _lines(rows: Iterable[SavedRow]) -> bytes:
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode()


def as_lists(values: Any) -> Any:
    """Return an array as nested lists with rounded numbers; NaN and infinity become None."""
    return plain(np.round(np.asarray(values, dtype=np.float64), DIGITS).tolist())


def saved_rows(folder: RunFolder) -> list[SavedRow]:
    """All committed rows of a circuit's run, phase by phase."""
    phases = [phase for phase, _ in folder.recipe_as(LmCircuit).phases]

    def parse(line: str) -> tuple[tuple[int, int], SavedRow]:
        row = json.loads(line)
        return (phases.index(row["phase"]), int(row["index"])), row

    return read_lines(folder, ROWS, parse)


def column(rows: Sequence[SavedRow], name: str) -> np.ndarray:
    """The numbers of all rows under one name [question, …]."""
    return np.array([row[name] for row in rows], dtype=float)


def of_phase(rows: Sequence[SavedRow], phase: str) -> list[SavedRow]:
    """The rows of one phase."""
    return [row for row in rows if row["phase"] == phase]
