"""The output of a command: printed as text or JSON, saved to a file, and drawn.

The ending of a file's name chooses the format. Paths are checked before the computation begins.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hopscope.cli import flags
from hopscope.cli.options import command, gathered, option, refuse_unused
from hopscope.cli.output import note, prose, say_json
from hopscope.cli.tables import Part, piece_of, print_parts
from hopscope.display import data_frame, plain
from hopscope.errors import ConfigError
from hopscope.plots.formats import FORMATS, check_format, check_width
from hopscope.plots.piece import pieces_of
from hopscope.store.files import check_files, write_bytes

if TYPE_CHECKING:
    from hopscope.plots.look import Picture

    Draw = Callable[[], Picture]

FRAMES = {".csv": ("pandas",), ".parquet": ("pandas", "pyarrow")}
"""Endings of tables, and the packages that write them."""


@dataclass(frozen=True)
class Output:
    """The output of a command."""

    data: Any
    """The data for --json and for .json files."""
    parts: Sequence[Part]
    """The text printed without --json."""
    draw: "Draw | None" = None
    beside: "Mapping[str, Draw]" = field(default_factory=dict)
    """Figures drawn in addition to `draw`, by the suffix of their file names."""
    frame: Callable[[], Any] | None = None
    """Makes a data frame; None if the output is not a table."""
    files: Mapping[str, Callable[[Path], None]] = field(default_factory=dict)
    """Functions that write files of other endings."""

    @classmethod
    def of(cls, result: Any, data: Any = None, **more: Any) -> "Output":
        """Make the output of a result from its pieces, figure, data and (if it has one) frame."""
        data = result.to_dict() if data is None else data
        frame = getattr(result, "frame", None)
        return cls(data, pieces_of(result), result.picture, frame=frame, **more)

    @classmethod
    def table(
        cls, rows: Sequence[Mapping[str, Any]], formats: Mapping[str, str], title: str = ""
    ) -> "Output":
        """Make the output of a table of these rows, with numbers in these formats."""
        return cls(rows, [piece_of(rows, formats, title)], frame=partial(data_frame, rows))


@dataclass(frozen=True)
class Destination:
    """The destination of a command's output, and the size of its figures."""

    json: bool
    figure: Path | None
    width: float | None
    dpi: int
    save: Path | None = None

    def check(
        self, known: Sequence[str] = (), *, draws: bool = True, beside: Sequence[str] = ()
    ) -> None:
        """Raise ConfigError for unwritable files, unknown endings, and sizes without a figure."""
        if self.save is not None:
            if draws and self.save.suffix in FORMATS:
                raise ConfigError(f"--save writes no figure: `--figure {self.save}` draws it")
            found = ending(self.save, known)
            if lacks := [each for each in FRAMES.get(found, ()) if find_spec(each) is None]:
                raise ConfigError(
                    f"{found} files need {' and '.join(lacks)}: `pip install {' '.join(lacks)}`"
                )
        if not draws:
            refuse_unused("as this command draws no figure", "--figure", "--width", "--dpi")
        check_width(self.width)
        if self.figure is None:
            refuse_unused("where no figure is drawn", "--width", "--dpi")
        else:
            check_format(self.figure)
            check_files(self.figure, *(near(self.figure, name) for name in beside))
        check_files(self.save)

    def put(self, output: Output) -> None:
        """Print, save and draw the output."""
        if self.save and self.save.suffix in FRAMES and output.frame is None:
            raise ConfigError(f"--save is {self.save}, and this is not a table; expected .json")
        if self.json:
            say_json(output.data)
        else:
            print_parts(output.parts)
        if self.save is not None:
            self._write(output, self.save)
        if self.figure is not None and output.draw is not None:
            self.draw(self.figure, output.draw, output.beside)

    def tell(self, line: object) -> None:
        """Print a remark: on stderr if stdout has JSON."""
        (note if self.json else prose)(line)

    def draw(self, path: Path, make: "Draw", beside: "Mapping[str, Draw] | None" = None) -> None:
        """Draw a figure and those in `beside`; print the path and caption of each."""
        from hopscope.plots.look import looking
        from hopscope.plots.saving import save_figure

        figures = {path: make} | {near(path, name): each for name, each in (beside or {}).items()}
        for place, each in figures.items():
            with looking(self.width):
                figure = each()
            self.tell(f"figure: {save_figure(figure, place, self.dpi)}")
            self.tell(figure.caption)

    def _write(self, output: Output, path: Path) -> None:
        which = ending(path, (".json", *FRAMES, *output.files))
        if which in output.files:
            output.files[which](path)
        elif which == ".json":
            write_bytes(path, json.dumps(plain(output.data), ensure_ascii=False).encode())
        elif output.frame is not None:
            frame = output.frame()
            csv = which == ".csv"
            write_bytes(path, frame.to_csv(index=False).encode() if csv else frame.to_parquet())
        self.tell(f"saved: {path}")


figure_options = (
    option("--figure FILE", "Draw a figure to this file (.svg, .pdf or .png)."),
    option("--width INCHES", "Width of the figure (default: 3.35 or 6.9, whichever fits better)."),
    option("--dpi N", "Dots per inch of PNG.", type=click.IntRange(50, 1200), default=300),
)  # fmt: skip
shown_or_drawn = gathered("to", Destination, flags.json, *figure_options)
"""The flags of a command that prints and draws its result but does not save it."""


def reporting(
    *own: Callable[[Any], Any],
    endings: Sequence[str] = (),
    frame: bool = True,
    draws: bool = True,
    beside: Sequence[str] = (),
) -> Callable[[Callable[..., Output]], click.Command]:
    """Make a command from a function that takes a Destination and its own options, and returns
    Output.
    """
    known = (".json", *(FRAMES if frame else ()), *endings)
    says = f"Write the result to this file, in the format of its ending: {', '.join(known)}."
    flags_of_output = gathered(
        "to", Destination, flags.json, option("--save FILE", says), *figure_options
    )

    def decorate(compute: Callable[..., Output]) -> click.Command:
        @wraps(compute)
        def called(to: Destination, **values: Any) -> None:
            to.check(known, draws=draws, beside=beside)
            to.put(compute(to, **values))

        return command(*own, flags_of_output)(called)

    return decorate


def near(path: Path, name: str) -> Path:
    """Return the path of an additional figure: the stem of `path`, a hyphen and `name`."""
    return path.with_name(f"{path.stem}-{name}{path.suffix}")


def ending(path: Path, known: Sequence[str]) -> str:
    """Return the longest of the known endings that matches; raises ConfigError if none does."""
    found = [each for each in known if path.name.endswith(each)]
    if not found:
        raise ConfigError(f"--save is {path}; expected a name that ends in {', '.join(known)}")
    return max(found, key=len)
