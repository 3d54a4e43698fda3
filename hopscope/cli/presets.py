"""`hopscope presets`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from hopscope.cli.output import say
from hopscope.errors import ConfigError
from hopscope.papers import preset
from hopscope.papers import presets as all_presets
from hopscope.store.files import write_bytes
from hopscope.store.writable import check_files


@dataclass(frozen=True)
class PresetsArguments:
    """List the presets, or show every field of one with its source in the paper."""

    name: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="PRESET")] = None
    """A preset; unset: list all."""
    out: Path | None = None
    """Write the preset as a recipe to this file (JSON), which `hopscope train FILE.json` takes."""


def presets(chosen: PresetsArguments) -> int:
    if chosen.out is not None:
        return _write(chosen.name, chosen.out)
    if chosen.name is None:
        width = max(map(len, all_presets()))
        for one in all_presets().values():
            say(f"{one.name:<{width}}  {one.summary}")
        return 0
    found = preset(chosen.name)
    say(f"{found.name}: {found.summary}", "")
    rows = [(path, _shown(value), source) for path, value, source in found.fields()]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for path, value, source in rows:
        say(f"{path:<{widths[0]}}  {value:<{widths[1]}}  {source}")
    return 0


def _write(name: str | None, path: Path) -> int:
    if name is None:
        raise ConfigError("--out writes one preset: name it; `hopscope presets` lists them")
    if path.suffix != ".json":
        raise ConfigError(f"--out is {path}; expected a name that ends in .json")
    recipe = preset(name).experiment
    check_files(path)
    write_bytes(path, recipe.to_file().encode())
    say(f"recipe: {path}; `hopscope train {path}` trains it")
    return 0


def _shown(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "-"
    return "-" if value is None else str(value)
