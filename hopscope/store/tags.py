"""Tags: names that people give to runs, kept in one small file of the store, `tags.json`.

A run's own files know nothing of them: a tagged run is the same run to the bit, and a copy of its
folder has no tags. One run may have many tags, and many runs one.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from hopscope.configs import Config
from hopscope.errors import ConfigError, RunDamaged, StoreError
from hopscope.store.files import flush_inside, read_inside, write_inside
from hopscope.store.folder import GALLERY

TAGS = "tags.json"
FORMAT: Literal[1] = 1
MOST_BYTES = 2**22
"""The largest file of tags that is read, in bytes."""
TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
"""What a tag may be: up to 64 letters, digits, dots, underscores and hyphens; a letter or digit
first."""
OF_A_RUN = re.compile(rf"(.*-)?[0-9a-f]{{10}}|{GALLERY.rstrip('/')}(-.*)?", re.ASCII)
"""What runs are called: anything with a hash at its end, and copies out of the gallery."""


def check_tag(tag: str) -> str:
    """Refuse what cannot be told from a path, a flag or the name of a run."""
    if TAG.fullmatch(tag) is None:
        raise ConfigError(
            f"the tag is {tag[:80]!r}; expected up to 64 letters (a to z), digits, dots, hyphens "
            "and underscores, of which the first is a letter or a digit"
        )
    if OF_A_RUN.fullmatch(tag):
        raise ConfigError(f"the tag {tag!r} looks like the name of a run: choose another word")
    return tag


def _checked(tag: str) -> str:
    try:
        return check_tag(tag)
    except ConfigError as error:
        raise ValueError(str(error)) from error


class _Kept(Config):
    """The content of the file of tags."""

    format: Literal[1] = FORMAT
    runs: dict[
        Annotated[str, Field(pattern=r"^[^/\x00]{1,255}$")],
        tuple[Annotated[str, AfterValidator(_checked)], ...],
    ] = Field(default_factory=dict)
    """The tags of each run, by its name."""


def read_tags(root: Path) -> dict[str, tuple[str, ...]]:
    """The tags of each run of a store; no file, no tags."""
    path = root / TAGS
    if not os.path.lexists(path):
        return {}
    try:
        return _Kept.from_json(read_inside(root, TAGS, MOST_BYTES)).runs
    except (RunDamaged, ConfigError) as error:
        what = str(error) if isinstance(error, RunDamaged) else f"{path} holds no tags ({error})"
        raise StoreError(f"{what}: restore or remove it; the runs' own names remain") from error


def write_tags(root: Path, tags: Mapping[str, tuple[str, ...]]) -> None:
    """Replace the file; runs without tags are left out."""
    kept = _Kept(runs={run: of_run for run, of_run in tags.items() if of_run})
    content: dict[str, Any] = kept.model_dump(mode="json")
    write_inside(root, TAGS, (json.dumps(content, indent=1, sort_keys=True) + "\n").encode())
    flush_inside(root, {TAGS})
