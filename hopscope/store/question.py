"""A question in SQL whose answer may be a data frame: `Store().sql("from metrics").df()`.

pandas and pyarrow are used if they are installed, and not needed for anything else here.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from textwrap import shorten
from typing import Any

from hopscope.display import Displayed
from hopscope.errors import ConfigError, RunDamaged, RunWarning
from hopscope.store import metrics
from hopscope.store.duck import execute, in_form
from hopscope.store.folder import RunFolder
from hopscope.store.query import Answer, Source, answered, sql


@dataclass(frozen=True)
class Question(Displayed):
    """A question in SQL, which is answered in the form that is asked for; each time it is computed
    anew. Runs that are left out, since they cannot be read, are told as warnings. A notebook shows
    the answer.
    """

    source: Source
    query: str
    strict: bool = False
    """Is a run that cannot be read an error?"""

    def __repr__(self) -> str:
        query = shorten(self.query, 80, placeholder=" …")
        return f"Question({query!r}), answered by .rows(), .df() or .arrow()"

    def answer(self) -> Answer:
        """The rows with the names of their columns, and a line for each run that is left out."""
        found = sql(self.source, self.query)
        self._check(found.problems)
        return found

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows, as Python's own values."""
        found: list[tuple[Any, ...]] = self._asked(lambda duck: execute(duck, self.query))
        return found

    def df(self) -> Any:
        """A data frame of pandas, which hopscope does not need otherwise."""
        _check_library("pandas", "a data frame")
        return self._asked(lambda duck: in_form(duck, self.query, "df"))

    def arrow(self) -> Any:
        """A table of pyarrow, which hopscope does not need otherwise."""
        _check_library("pyarrow", "an Arrow table")
        return self._asked(lambda duck: in_form(duck, self.query, "to_arrow_table"))

    def _asked(self, ask: Callable[[Any], Any]) -> Any:
        found, problems = answered(self.source, self.query, ask)
        self._check(problems)
        for problem in problems:
            warnings.warn(f"left out: {problem}", RunWarning, stacklevel=3)
        return found

    def _check(self, problems: Sequence[str]) -> None:
        if self.strict and problems:
            raise RunDamaged(problems[0])


@dataclass(frozen=True)
class OneRun:
    """A run that is asked alone."""

    folder: RunFolder

    @property
    def root(self) -> Path:
        return self.folder.path

    def readable(self) -> tuple[list[RunFolder], list[str]]:
        return [RunFolder(self.folder.path, self.folder.gallery)], []

    def tags(self) -> dict[str, tuple[str, ...]]:
        return {}


def metrics_of(folder: RunFolder) -> Question:
    """The losses of one run as a table: split, step, seed, hop, loss."""
    return Question(
        OneRun(folder),
        f"select {', '.join(metrics.TABLE.columns)} from metrics {metrics.TABLE.order}",
        strict=True,
    )


def _check_library(name: str, form: str) -> None:
    if find_spec(name) is None:
        raise ConfigError(f"{form} needs {name}: `pip install {name}`; rows() does without")
