"""Results that show themselves in a notebook, and have a picture anywhere.

What they show is written in `hopscope.plots`, far above the rooms that results live in: it is
looked up, and a drawing library loaded, when the first of them is shown.
"""

import math
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from hopscope.errors import ConfigError

SHOWS = "hopscope.plots.notebook"
WATCHES = "hopscope.plots.watching"


class Displayed:
    """A result that a notebook shows as figures and tables; elsewhere its `repr` is one line, and
    `picture()` is its figure.
    """

    def _repr_html_(self) -> str:
        """What IPython asks for; the terminal, and who prints, get text."""
        html: str = import_module(SHOWS).html(self)
        return html

    def picture(self, path: Path | str | None = None, width: float | None = None) -> Any:
        """The figure of this result, so many inches wide (5.5 for NeurIPS and ICLR; None: 3.35 or
        6.9, whichever is better). With a path it is written, as .svg, .pdf or .png.
        """
        return import_module(SHOWS).picture(self, path, width)


def plain(value: Any) -> Any:
    """The value with None for every number that is not finite: JSON has no NaN."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def data_frame(rows: Iterable[Mapping[str, Any]]) -> Any:
    """A data frame (pandas) of rows that have the same columns."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ConfigError("a data frame needs pandas: `pip install pandas`") from error
    return pd.DataFrame.from_records([*rows])


def watcher() -> Any:
    """What shows in a notebook how a training goes; None where no notebook is."""
    return import_module(WATCHES).Watching() if in_notebook() else None


def in_notebook() -> bool:
    """Is this code asked from a notebook (and not from a terminal, with IPython or without)?"""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None
