"""Arguments and flags that several commands share."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from hopscope.cli.options import completing, option
from hopscope.errors import ConfigError
from hopscope.lm.known import KNOWN
from hopscope.papers import presets
from hopscope.store import RunFolder, Store, gallery
from hopscope.store.manifest import MANIFEST

MOST_SEEDS = 100_000
"""The largest number of seeds of a range."""


def _runs(ctx: click.Context) -> Iterator[str]:
    yield from (f"gallery/{name}" for name in gallery.names())
    store = ctx.params.get("store") or Store()
    yield from store.names()
    yield from (tag for tags in store.tags().values() for tag in tags)


RUNS = completing(_runs)
PRESETS = completing(lambda _: presets())
MODELS = completing(lambda _: KNOWN)

run = click.argument("run", metavar="RUN", shell_complete=RUNS)
store = option(
    "--store FOLDER",
    "Folder of runs (default: $HOPSCOPE_STORE, or ./runs).",
    callback=lambda _, __, folder: Store(folder),
)
json = option("--json", "Print JSON only.")
threads = option(
    "--threads N",
    "Processor threads (default: all cores; a resumed run takes as many as before). "
    "Results are bit-identical for the same number of threads.",
)
device = option(
    "--device DEVICE",
    "Where to compute: cpu, cuda, or one of several GPUs, as cuda:1; auto takes a GPU if there is "
    "one.",
    default="auto",
)
seeds = option(
    "--seeds SEEDS",
    "Train a run for each of these seeds: 0..7, or 0,3,5.",
    callback=lambda _, __, text: None if text is None else seeds_of(text),
)


def sample(what: str = "examples") -> Callable[[Any], Any]:
    """Return the flag --sample, the seed of the examples."""
    return option(
        "--sample N", f"Which {what}: another number draws others.",
        type=click.IntRange(0, 10**8 - 1),  # as `SEEDS` in `hopscope.circuits.examples`
        default=0,
    )  # fmt: skip


def range_of(text: str) -> range:
    """Parse a text such as 3 or 0..7; return an empty range if it is neither.

    >>> range_of("0..7"), range_of("3"), list(range_of("7..0")), list(range_of("x"))
    (range(0, 8), range(3, 4), [], [])
    """
    match = re.fullmatch(r"(\d{1,10})(?:\.\.(\d{1,10}))?", text, re.ASCII)
    return range(int(match[1]), int(match[2] or match[1]) + 1) if match else range(0)


def seeds_of(text: str) -> tuple[int, ...]:
    """Parse a list of seeds and ranges; raises ConfigError for anything else.

    >>> seeds_of("0..2,7")
    (0, 1, 2, 7)
    """
    found: list[int] = []
    for part in text.replace(" ", ",").split(","):
        seeds = range_of(part)
        if not 0 < len(seeds) <= MOST_SEEDS:
            raise ConfigError(
                f"--seeds is {text!r}; expected numbers such as 0,3,5 or a range such as 0..7, of "
                f"at most {MOST_SEEDS:,}"
            )
        found += seeds
    return tuple(found)


def seeds_text(seeds: Sequence[int]) -> str:
    """Seeds as --seeds takes them.

    >>> seeds_text((0, 1, 2, 7))
    '0..2,7'
    """
    parts: list[list[int]] = []
    for seed in seeds:
        if parts and seed == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], seed]
        else:
            parts.append([seed])
    return ",".join("..".join(map(str, part)) for part in parts)


def find_run(name: str, store: Store, beside: str = "") -> RunFolder:
    """The folder of a run: by its name, by a part of it, by a tag, or by its path. By name, the run
    called `beside` is left out.
    """
    path = Path(name).absolute()
    if os.sep in name and (path / MANIFEST).is_file():
        return Store(path.parent).find(path.name)
    check_no_model(name)
    return store.find(name, beside)


def check_no_model(name: str) -> None:
    """Raise ConfigError if this is the path of a model of transformers, without `hf:`."""
    folder = Path(name)
    there = os.sep in name and (folder / "config.json").is_file()
    if there and not (folder / MANIFEST).is_file():
        raise ConfigError(
            f"{name} is not a run: it has no {MANIFEST}; a model that transformers wrote is named "
            f"hf:{name}, with --task"
        )
