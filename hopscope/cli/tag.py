"""`hopscope tag`: names that people give to runs."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from hopscope.cli.arguments import RunArguments
from hopscope.cli.output import say
from hopscope.errors import ConfigError
from hopscope.store import Store


@dataclass(frozen=True)
class TagArguments(RunArguments):
    """Give a run tags, by which it is found wherever a run is asked for; its files stay as they
    are.
    """

    tags: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="TAG …")] = ()
    """Letters, digits, dots, hyphens and underscores; without any, those that it has are told."""
    remove: bool = False
    """Take these tags away instead."""


def tag(chosen: TagArguments) -> int:
    store = Store(chosen.store)
    name = store.find(chosen.run).name
    if chosen.remove:
        if not chosen.tags:
            raise ConfigError("tag --remove needs the tags that are to go")
        now = store.untag(name, *chosen.tags)
    else:
        now = store.tag(name, *chosen.tags) if chosen.tags else store.tags().get(name, ())
    say(f"{name}: {', '.join(now) or 'no tags'}")
    shared = {tag: [run for run, tags in store.tags().items() if tag in tags] for tag in now}
    for each, runs in shared.items():
        if len(runs) > 1:
            say(f"{each} is the tag of {len(runs)} runs: it names none of them alone")
    return 0
