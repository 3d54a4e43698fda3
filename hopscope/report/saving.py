"""Figures as files, and as pieces of a page: with title, caption and real text in them.

An SVG that is shown on a page keeps to the colours that its reader has chosen. Every colour of the
look stands in it twice: as it is on white, and as the name of a custom property, which browsers
take and other programs pass over. The page, or the SVG itself, gives these names their colours;
those without one have the colour on white.
"""

import io
import re
from html import escape
from pathlib import Path
from typing import Any

from matplotlib import rc_context

from hopscope.errors import ConfigError
from hopscope.report.formats import check_format
from hopscope.report.look import DARK, LIGHT, Palette, Picture
from hopscope.store.files import write_bytes

HUE = "filter: invert(1) hue-rotate(180deg)"
"""Turns a map from white to blue into one from black to blue."""


def save_figure(figure: Picture, path: Path | str) -> Path:
    """Write a figure in the format its name asks for."""
    path = Path(path)
    check_format(path, figure.look.style)
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; expected a file for the figure")
    if path.suffix == ".svg":
        text = svg(figure, path.name)
        write_bytes(path, (_own_theme(text) if figure.look.style == "page" else text).encode())
        return path
    about = {"Title": _title(figure), "Subject": figure.caption, "CreationDate": None}
    if path.suffix == ".png":
        about = {"Title": _title(figure), "Description": figure.caption}
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:], dpi=figure.look.dpi, metadata=about)
    write_bytes(path, content.getvalue())
    return path


def svg(figure: Picture, salt: str) -> str:
    """A figure as SVG, without what stands before its first element; the same salt gives the same
    ids.
    """
    content = io.StringIO()
    options: dict[str, Any] = {"metadata": {"Date": None, "Title": _title(figure)}}
    with rc_context({"svg.hashsalt": salt}):  # else the ids are drawn anew every time
        figure.savefig(content, format="svg", dpi=figure.look.dpi, **options)
    text = content.getvalue()
    text = text[text.index("<svg") :]
    said = f"</title>\n <desc>{escape(figure.caption)}</desc>"
    return text.replace("</title>", said, 1)


def themed(text: str) -> str:
    """An SVG whose colours have names, so that whoever shows it can give them others."""
    names = {colour: name for name, colour in reversed(_named(LIGHT).items())}

    def named(match: re.Match[str]) -> str:
        kind, colour = match.groups()
        return (
            f"{match[0]}; {kind}: var({names[colour]}, {colour})" if colour in names else match[0]
        )

    return re.sub(r"(fill|stroke): (#[0-9a-f]{6})", named, text)


def theme(palette: Palette) -> str:
    """The names of colours in themed SVG, with those of a palette."""
    return "; ".join(f"{name}: {colour}" for name, colour in _named(palette).items())


def _named(palette: Palette) -> dict[str, str]:
    return {f"--hopscope-{number}": each for number, each in enumerate(palette.cycle())}


def _own_theme(text: str) -> str:
    """A file that follows what its reader has chosen, wherever it is shown."""
    style = (
        f"<style>@media (prefers-color-scheme: dark) {{ svg {{ {theme(DARK)} }} "
        f"image {{ {HUE} }} }}</style>"
    )
    light = themed(text)
    return re.sub(r"(<svg[^>]*>)", rf"\1\n {style}", light, count=1)


def _title(figure: Picture) -> str:
    return figure.name or "hopscope"
