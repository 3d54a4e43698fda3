"""Figures as files, and as pieces of a page: with name, caption and real text in them.

SVG keeps to the light or dark that its reader has chosen. Every colour of the style stands in it
twice: as it is on white, and as the name of a CSS variable, which browsers take and other programs
pass over. The page, or the file itself, gives the variables their colours.
"""

import io
import re
from html import escape
from pathlib import Path

from matplotlib import rc_context

from hopscope.errors import ConfigError
from hopscope.plots.formats import check_format
from hopscope.plots.look import DARK, LIGHT, Palette, Picture
from hopscope.store.files import write_bytes

HUE = "filter: invert(1) hue-rotate(180deg)"
"""Turns a map from white to blue into one from black to blue."""
DPI = 300
"""Dots per inch of PNG, and of maps inside SVG and PDF."""


def save_figure(figure: Picture, path: Path | str, dpi: int = DPI) -> Path:
    """Write a figure in the format that the path's ending names."""
    path = Path(path)
    check_format(path)
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; expected a file for the figure")
    if path.suffix == ".svg":
        style = (
            f"<style>@media (prefers-color-scheme: dark) {{ svg {{ {theme(DARK)} }} "
            f"image {{ {HUE} }} }}</style>"
        )
        text = re.sub(
            r"(<svg[^>]*>)", rf"\1\n {style}", themed(svg(figure, path.name, dpi)), count=1
        )
        write_bytes(path, text.encode())
        return path
    caption = "Description" if path.suffix == ".png" else "Subject"
    about: dict[str, str | None] = {"Title": _title(figure), caption: figure.caption}
    if path.suffix == ".pdf":
        about["CreationDate"] = None
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:], dpi=dpi, metadata=about)
    write_bytes(path, content.getvalue())
    return path


def svg(figure: Picture, salt: str, dpi: int = DPI) -> str:
    """A figure as SVG, from its first element on; the same salt gives the same ids."""
    content = io.StringIO()
    about = {"Date": None, "Title": _title(figure)}
    with rc_context({"svg.hashsalt": salt}):
        figure.savefig(content, format="svg", dpi=dpi, metadata=about)
    text = content.getvalue()
    text = text[text.index("<svg") :]
    said = f"</title>\n <desc>{escape(figure.caption)}</desc>"
    return text.replace("</title>", said, 1)


def themed(text: str) -> str:
    """An SVG whose colours are CSS variables, to which a page can give others."""
    names = {colour: name for name, colour in reversed(_named(LIGHT).items())}

    def named(match: re.Match[str]) -> str:
        kind, colour = match.groups()
        return (
            f"{match[0]}; {kind}: var({names[colour]}, {colour})" if colour in names else match[0]
        )

    return re.sub(r"(fill|stroke): (#[0-9a-f]{6})", named, text)


def theme(palette: Palette) -> str:
    """The CSS variables of themed SVG, with the colours of a palette."""
    return "; ".join(f"{name}: {colour}" for name, colour in _named(palette).items())


def _named(palette: Palette) -> dict[str, str]:
    return {f"--hopscope-{number}": each for number, each in enumerate(palette.cycle())}


def _title(figure: Picture) -> str:
    return figure.name or "hopscope"
