"""Links, pipes, devices and holes where a file or a folder of a run should be."""

import hashlib
import json
import os
import socket
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

HUGE = 30 * 2**30
"""Bytes of a file that is one hole."""
READABLE = 2**28
"""Bytes of a file that a second forgery still reads."""


@dataclass(frozen=True)
class World:
    """A run folder, and what lies around it that must stay as it is."""

    run: Path
    other: Path
    """Another run of the store."""
    outside: Path
    """A folder beside the store."""
    parquet: tuple[bytes, ...]
    """What `parquet_files` made."""

    def read(self, name: str) -> bytes:
        """A file of the run; no pipe, device or hole that an earlier forgery left."""
        about = (self.run / name).stat()
        if not stat.S_ISREG(about.st_mode) or about.st_size > READABLE:
            raise OSError(f"{name} cannot be forged any further")
        return (self.run / name).read_bytes()

    def unsigned(self) -> None:
        """Take the manifest's hash of itself away, which would find every forgery of it."""
        manifest = json.loads(self.read("manifest.json"))
        manifest.pop("check", None)
        (self.run / "manifest.json").write_text(json.dumps(manifest))

    def named(self) -> list[str]:
        """The files that the manifest names."""
        return sorted(json.loads(self.read("manifest.json"))["files"])

    def put(self, name: str, data: bytes, chance: Random) -> None:
        """Write a file, and mostly make the manifest name it with its hash."""
        (self.run / name).write_bytes(data)
        if name != "manifest.json" and chance.random() < 0.95:
            self.name(name, data)

    def name(self, name: str, data: bytes, size: int | None = None) -> None:
        """Make the manifest name a file with this content."""
        manifest = json.loads(self.read("manifest.json"))
        digest = hashlib.sha256(data).hexdigest()
        manifest["files"][name] = {"sha256": digest, "size": len(data) if size is None else size}
        (self.run / "manifest.json").write_text(json.dumps(manifest))


def kind_of_file(world: World, chance: Random) -> str:
    """Something else where a file or a folder of the run should be."""
    folders = ["metrics", "checkpoints", "answers", "parameters"]
    names = [*world.named(), "manifest.json", "manifest.json", ".lock", *folders]
    name = chance.choice(names)
    path = world.run / name
    if name in folders and not path.is_dir():
        name, path = "manifest.json", world.run / "manifest.json"
    kinds: dict[str, Callable[[Path, Path], None]] = {
        "link to the same outside": _moved,
        "link to a secret": _link("secret.txt"),
        "link to a folder": _link("."),
        "link to nothing": _link("nothing"),
        "link to itself": _loop,
        "link to /dev/zero": lambda path, _: path.symlink_to("/dev/zero"),
        "pipe": lambda path, _: os.mkfifo(path),
        "device": _device,
        "folder": lambda path, _: path.mkdir(),
        "socket": _socket,
        "hole": _hole,
    }
    how = chance.choice(list(kinds))
    old = world.read(name) if path.is_file() else b""
    if how != "link to the same outside" and (path.exists() or path.is_symlink()):
        path.rename(path.with_name(path.name + ".away")) if path.is_dir() else path.unlink()
    kinds[how](path, world.outside)
    if how == "hole" and name in world_names(world) and chance.random() < 0.5:
        world.name(name, old, HUGE)
    return f"{name} is a {how}"


def world_names(world: World) -> list[str]:
    """The files that the manifest names, if it can still be read."""
    path = world.run / "manifest.json"
    try:
        regular = stat.S_ISREG(path.lstat().st_mode) and path.stat().st_size < 2**20
        return world.named() if regular else []
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return []


def _moved(path: Path, outside: Path) -> None:
    """The real thing lies outside, and a link leads there."""
    if path.exists():
        path.rename(outside / "moved")
    else:
        (outside / "moved").write_bytes(b"kept")
    path.symlink_to(outside / "moved")


def _link(name: str) -> Callable[[Path, Path], None]:
    return lambda path, outside: path.symlink_to(outside / name)


def _loop(path: Path, _: Path) -> None:
    path.symlink_to(path.name)


def _device(path: Path, _: Path) -> None:
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:
        os.mkfifo(path)


def _socket(path: Path, _: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    os.chdir(here)


def _hole(path: Path, _: Path) -> None:
    with path.open("wb") as file:
        file.truncate(HUGE)


def whole_folder(world: World, chance: Random) -> str:  # noqa: ARG001
    """The run folder itself is a link to one outside."""
    world.run.rename(world.outside / "run")
    world.run.symlink_to(world.outside / "run")
    return "the run folder is a link"
