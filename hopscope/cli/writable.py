"""Can a figure be written? Asked before anything is computed for it."""

from pathlib import Path

from hopscope.report.formats import check_format
from hopscope.store.writable import check_files


def check_figures(*paths: Path) -> None:
    """Refuse files for figures whose format is unknown, or that cannot be written."""
    for path in paths:
        check_format(path)
    check_files(*paths)
