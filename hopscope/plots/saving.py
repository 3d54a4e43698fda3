"""Save figures as files, or as parts of a page, with their names, captions and text.

SVG adapts to the reader's light or dark theme. Every colour of the style occurs in it twice: as the
colour on white, and as a CSS variable, which browsers use and other programs ignore. The page, or
the file itself, sets the variables.
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
"""CSS that turns a map from white to blue into one from black to blue."""
DPI = 300
"""Dots per inch of PNG, and of maps inside SVG and PDF."""


def save_figure(figure: Picture, path: Path | str, dpi: int = DPI) -> Path:
    """Save a figure in the format of the path's ending; return the path."""
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
    """Return a figure as SVG from its <svg> element on; the same salt gives the same ids."""
    content = io.StringIO()
    about = {"Date": None, "Title": _title(figure)}
    with rc_context({"svg.hashsalt": salt}):
        figure.savefig(content, format="svg", dpi=dpi, metadata=about)
    text = content.getvalue()
    text = text[text.index("<svg") :]
    said = f"</title>\n <desc>{escape(figure.caption)}</desc>"
    return text.replace("</title>", said, 1)


def themed(text: str) -> str:
    """Return an SVG whose colours are CSS variables, which a page can change."""
    names = {colour: name for name, colour in reversed(_named(LIGHT).items())}

    def named(match: re.Match[str]) -> str:
        kind, colour = match.groups()
        return (
            f"{match[0]}; {kind}: var({names[colour]}, {colour})" if colour in names else match[0]
        )

    return re.sub(r"(fill|stroke): (#[0-9a-f]{6})", named, text)


def theme(palette: Palette) -> str:
    """Return CSS that sets the variables of themed SVG to the colours of a palette."""
    return "; ".join(f"{name}: {colour}" for name, colour in _named(palette).items())


def _named(palette: Palette) -> dict[str, str]:
    return {f"--hopscope-{number}": each for number, each in enumerate(palette.cycle())}


def _title(figure: Picture) -> str:
    return figure.name or "hopscope"
