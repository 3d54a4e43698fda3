"""The manifest: which files make up a run, and the SHA-256 of each.

It is written last, so it is the commit: files that it does not name do not exist.
"""

import json
from pathlib import Path

from pydantic import Field, ValidationError

from hopscope.configs import Config
from hopscope.errors import ConfigError, RunDamaged, RunTooNew
from hopscope.store.files import read_bytes, sha256

FORMAT = 1
MANIFEST = "manifest.json"


class FileEntry(Config):
    """One file of a run."""

    sha256: str
    size: int
    """In bytes."""

    @classmethod
    def of(cls, data: bytes) -> "FileEntry":
        return cls(sha256=sha256(data), size=len(data))


class Manifest(Config):
    """The committed state of a run."""

    format: int = FORMAT
    name: str
    """The run's name, which its config's digest determines."""
    step: int = 0
    """Steps trained."""
    complete: bool = False
    precision: str = ""
    """The arithmetic that `precision = "auto"` came to."""
    seconds: float = 0.0
    """Wall-clock time spent training."""
    files: dict[str, FileEntry] = Field(default_factory=dict)

    def to_bytes(self) -> bytes:
        return (json.dumps(self.model_dump(mode="json"), indent=1, sort_keys=True) + "\n").encode()


def read_manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    try:
        content = json.loads(read_bytes(path))
        version = content.get("format")
        if isinstance(version, int) and version > FORMAT:
            raise RunTooNew(
                f"{folder} has format {version}; this hopscope reads up to {FORMAT}: upgrade it"
            )
        return Manifest(**content)
    except (ValueError, AttributeError, TypeError, ConfigError, ValidationError) as error:
        raise RunDamaged(
            f"{path} is not a manifest ({error}): restore or remove the run"
        ) from error
