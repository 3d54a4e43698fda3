"""`hopscope models list` and `models pull`: language models that are known by name."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from hopscope.cli.arguments import JsonArguments
from hopscope.cli.output import say


@dataclass(frozen=True)
class ModelsListArguments(JsonArguments):
    """List the language models that can be fetched by name, and those that have been fetched."""


@dataclass(frozen=True)
class ModelsPullArguments:
    """Fetch a model into the cache ($HOPSCOPE_CACHE, or ~/.cache/hopscope)."""

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """A name of `hopscope models`, or OWNER/NAME, which comes from a hub."""


def listing(chosen: ModelsListArguments) -> int:
    from hopscope.cli.tables import print_rows
    from hopscope.llm.models import KNOWN, cache_root, cached

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
    from hopscope.llm.models import pull

    say(f"{chosen.name}: {pull(chosen.name)}")
    return 0
