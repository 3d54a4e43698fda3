"""`Displayed`: results that a notebook shows as figures, and that can be drawn with `picture()`.

The drawing code is in `hopscope.plots`, a higher layer than the results themselves. It is imported,
with the drawing library, when a result is first shown.
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
        """The result as HTML, for IPython; a terminal and `print` use `repr` and `str`."""
        html: str = import_module(SHOWS).html(self)
        return html

    def picture(self, path: Path | str | None = None, width: float | None = None) -> Any:
        """The figure of this result. `width` is in inches (5.5 for NeurIPS and ICLR; None: 3.35 or
        6.9, whichever fits better). With `path`, the figure is also written there, as .svg, .pdf
        or .png.
        """
        return import_module(SHOWS).picture(self, path, width)


def plain(value: Any) -> Any:
    """The value with every NaN and infinity replaced by None, since JSON has neither."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def data_frame(rows: Iterable[Mapping[str, Any]]) -> Any:
    """A pandas data frame from rows with the same columns."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ConfigError("a data frame needs pandas: `pip install pandas`") from error
    return pd.DataFrame.from_records([*rows])


def watcher() -> Any:
    """A display of training progress for a notebook; None outside a notebook."""
    return import_module(WATCHES).Watching() if in_notebook() else None


def in_notebook() -> bool:
    """True if this code runs in a notebook, not in a terminal (with IPython or without)."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None
