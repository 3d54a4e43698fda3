"""`hopscope presets`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from hopscope.cli.arguments import JsonArguments, refuse_unused
from hopscope.cli.output import say, say_json
from hopscope.errors import ConfigError
from hopscope.papers import preset
from hopscope.papers import presets as all_presets
from hopscope.store.files import check_files, write_bytes


@dataclass(frozen=True)
class PresetsArguments(JsonArguments):
    """List the presets, or show every field of one with its source in the paper."""

    name: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="PRESET")] = None
    """A preset; unset: list all."""
    out: Path | None = None
    """Write the preset as a recipe to this file (JSON), which `hopscope train FILE.json` takes."""


def presets(chosen: PresetsArguments) -> int:
    if chosen.out is not None:
        refuse_unused(chosen, ["json"], "with --out")
        return _write(chosen.name, chosen.out)
    if chosen.name is None:
        rows: list[dict[str, Any]] = [
            {"name": one.name, "summary": one.summary} for one in all_presets().values()
        ]
    else:
        found = preset(chosen.name)
        rows = [
            {"field": path, "value": value, "source": source}
            for path, value, source in found.fields()
        ]
        if not chosen.json:
            say(f"{found.name}: {found.summary}", "")
            rows = [row | {"value": _shown(row["value"])} for row in rows]
    if chosen.json:
        say_json(rows)
    else:
        _print(rows)
    return 0


def _write(name: str | None, path: Path) -> int:
    if name is None:
        raise ConfigError("--out writes one preset: name it; `hopscope presets` lists them")
    if path.suffix != ".json":
        raise ConfigError(f"--out is {path}; expected a name that ends in .json")
    recipe = preset(name).recipe
    check_files(path)
    write_bytes(path, recipe.to_file().encode())
    say(f"recipe: {path}; `hopscope train {path}` trains it")
    return 0


def _print(rows: Sequence[Mapping[str, Any]]) -> None:
    """Columns as wide as their longest words: for wide terminals, and for `grep`."""
    widths = [max(len(row[key]) for row in rows) for key in rows[0]]
    for row in rows:
        cells = zip(row.values(), widths, strict=True)
        say("  ".join(f"{cell:<{width}}" for cell, width in cells).rstrip())


def _shown(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "-"
    return "-" if value is None else str(value)
