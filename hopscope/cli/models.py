"""`hopscope models list` and `models pull`: language models that are known by name."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from hopscope.cli.output import say


@dataclass(frozen=True)
class ModelsListArguments:
    """List the language models that can be fetched by name, and those that have been fetched."""


@dataclass(frozen=True)
class ModelsPullArguments:
    """Fetch a model into the cache ($HOPSCOPE_CACHE, or ~/.cache/hopscope)."""

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """A name of `hopscope models`, or OWNER/NAME, which comes from a hub."""


def listing(chosen: ModelsListArguments) -> int:  # noqa: ARG001  (there are no flags)
    from hopscope.llm.models import KNOWN, cache_root, cached

    for name, known in KNOWN.items():
        here = "here" if cached(name).exists() else "not here"
        say(f"{name}: {known.summary}; {known.licence}; {here}")
    for folder in sorted((cache_root() / "models").glob("[!.]*--*")):
        say(f"{folder.name.replace('--', '/', 1)}: from the hub; here")
    return 0


def fetch(chosen: ModelsPullArguments) -> int:
    from hopscope.llm.models import pull

    say(f"{chosen.name}: {pull(chosen.name)}")
    return 0
