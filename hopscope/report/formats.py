"""What a figure's file may be called; no drawing library here."""

from pathlib import Path

from hopscope.errors import ConfigError

FORMATS = (".svg", ".pdf", ".png")


def check_format(path: Path) -> None:
    """Refuse a name that asks for no format we know."""
    if path.suffix not in FORMATS:
        raise ConfigError(f"a figure goes to a file that ends in {', '.join(FORMATS)}, not {path}")
