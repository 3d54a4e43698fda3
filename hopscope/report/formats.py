"""What a figure's file may be called; no drawing library here."""

from pathlib import Path
from typing import Literal

from hopscope.errors import ConfigError

Style = Literal["paper", "page", "dark"]
Columns = Literal[1, 2]
FORMATS = (".svg", ".pdf", ".png")


def check_format(path: Path, style: Style = "paper") -> None:
    """Refuse a name that asks for no format we know, or for one that this style does not have."""
    if path.suffix not in FORMATS:
        raise ConfigError(f"a figure goes to a file that ends in {', '.join(FORMATS)}, not {path}")
    if style == "page" and path.suffix != ".svg":
        raise ConfigError(
            f"--style page follows its reader's light or dark, which only .svg can; for {path} "
            "choose paper or dark"
        )
