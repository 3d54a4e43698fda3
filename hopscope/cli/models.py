"""`hopscope models`: language models that are known by name, and runs of one's own on a hub."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from hopscope.cli.arguments import JsonArguments, RunArguments, StoreArguments
from hopscope.cli.output import say
from hopscope.store import Store


@dataclass(frozen=True)
class ModelsListArguments(JsonArguments):
    """List the language models that can be fetched by name, and those that have been fetched."""


@dataclass(frozen=True)
class ModelsPullArguments(StoreArguments):
    """Fetch a language model into the cache ($HOPSCOPE_CACHE, or ~/.cache/hopscope), or a run that
    `models push` put on a hub into the store.
    """

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """A name of `hopscope models`, or OWNER/NAME, which comes from a hub."""


@dataclass(frozen=True)
class ModelsPushArguments(RunArguments):
    """Put a run on a hub: its files as they are, and a card that is made from it."""

    place: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="OWNER/NAME")]
    """Where it goes. A run that is there is replaced."""
    license: str = "apache-2.0"
    """The licence that its card names, as the hub calls it."""
    private: bool = False
    """A new place there is seen by its owner alone."""


def listing(chosen: ModelsListArguments) -> int:
    from hopscope.cli.tables import print_rows
    from hopscope.llm.models import KNOWN, cached
    from hopscope.machine import cache_root

    rows = [
        {
            "model": name,
            "what": known.summary,
            "licence": known.licence,
            "here": "yes" if cached(name).exists() else "no",
        }
        for name, known in KNOWN.items()
    ]
    for folder in sorted((cache_root() / "models").glob("[!.]*--*")):
        name = folder.name.replace("--", "/", 1)
        rows.append({"model": name, "what": "from a hub", "licence": "", "here": "yes"})
    print_rows(rows, {}, json=chosen.json)
    return 0


def fetch(chosen: ModelsPullArguments) -> int:
    from hopscope.llm.models import cached, is_place, pull
    from hopscope.sharing.hub import Hub

    if is_place(chosen.name) and not cached(chosen.name).exists():
        hub = Hub()
        if hub.is_run(chosen.name):
            run = hub.pull(chosen.name, Store(chosen.store))
            say(f"{run.name}: from {chosen.name}, in {run.path}")
            return 0
    say(f"{chosen.name}: {pull(chosen.name)}")
    return 0


def push(chosen: ModelsPushArguments) -> int:
    from hopscope.sharing.hub import Hub, check_place

    check_place(chosen.place)
    folder = Store(chosen.store).find(chosen.run)
    url = Hub().push(folder, chosen.place, chosen.license, chosen.private)
    files = len(folder.manifest.files)
    say(f"{folder.name}: {files} files and a card, at {url}")
    return 0
