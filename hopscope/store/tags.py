"""Tags: names that users give to runs, kept in the file `tags.json` of the store.

Tags are not stored in the run's files, so tagging changes no bit of a run, and a copy of its folder
has no tags. A run may have several tags, and several runs may share one.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from hopscope.configs import Config
from hopscope.errors import ConfigError, RunDamaged, StoreError
from hopscope.store.files import read_inside, write_inside
from hopscope.store.folder import GALLERY

TAGS = "tags.json"
MOST_BYTES = 2**22
"""Largest size of a file of tags that is read, in bytes."""
TAG = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
RUN = re.compile(rf"(.*-)?[0-9a-f]{{10}}|{GALLERY.rstrip('/')}(-.*)?", re.ASCII)
"""Names of runs: they end in a hash, or are copies of gallery models."""


class TagsFile(Config):
    """The content of the file."""

    format: Literal[1] = 1
    runs: dict[str, tuple[Annotated[str, Field(pattern=TAG)], ...]] = Field(default_factory=dict)
    """The tags of each run, by its name."""


def check_tag(tag: str) -> None:
    """Raise ConfigError for a tag that could be a path, a flag or the name of a run."""
    if tag.endswith("\n") or re.match(TAG, tag) is None:
        raise ConfigError(
            f"the tag is {tag[:80]!r}; expected up to 64 letters (a to z), digits, dots, hyphens "
            "and underscores, of which the first is a letter or a digit"
        )
    if RUN.fullmatch(tag):
        raise ConfigError(f"the tag {tag!r} looks like the name of a run: choose another word")


def read_tags(root: Path) -> dict[str, tuple[str, ...]]:
    """Return the tags of each run of a store; empty if there is no file."""
    if not os.path.lexists(root / TAGS):
        return {}
    try:
        return TagsFile.from_json(read_inside(root, TAGS, MOST_BYTES)).runs
    except (RunDamaged, ConfigError) as error:
        raise StoreError(
            f"{root / TAGS} holds no tags ({error}): restore or remove it; runs keep their names"
        ) from error


def write_tags(root: Path, tags: Mapping[str, tuple[str, ...]]) -> None:
    """Replace the file; runs without tags are left out."""
    file = TagsFile(runs={run: own for run, own in sorted(tags.items()) if own})
    write_inside(root, {TAGS: (file.model_dump_json(indent=1) + "\n").encode()})
