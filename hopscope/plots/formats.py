"""The formats and widths of figures, without a drawing library."""

from pathlib import Path

from hopscope.errors import ConfigError

FORMATS = (".svg", ".pdf", ".png")
WIDTH = (5.5, 20.0)
"""The least and the largest width, in inches; every figure fits into the least."""


def check_format(path: Path) -> None:
    """Raise ConfigError if the path's ending is not a format of figures."""
    if path.suffix not in FORMATS:
        raise ConfigError(f"a figure goes to a file that ends in {', '.join(FORMATS)}, not {path}")


def check_width(width: float | None) -> None:
    """Raise ConfigError for a width (inches) out of range; None (the default width) passes."""
    if width is not None and not WIDTH[0] <= width <= WIDTH[1]:
        raise ConfigError(
            f"a figure cannot be {width:g} inches wide; expected {WIDTH[0]:g} to {WIDTH[1]:g}"
        )
