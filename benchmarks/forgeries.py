"""Forged run folders: what a hostile or broken program might write where hopscope looks.

Each forgery changes one thing in a run folder, chosen by a random generator that the caller gives,
and says in words what it did. What is inside JSON, safetensors and Parquet is changed in its
structure, and the manifest then made to name it with the right hash.
"""

import hashlib
import json
import os
import socket
import stat
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from hopscope.configs import read_recipe
from hopscope.errors import HopscopeError

DEEP = 100_000
"""Brackets around nothing: 200 kB of nesting."""
HUGE = 30 * 2**30
"""Bytes of a file that is one hole."""
ROWS = 200_000_000
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    3.5,
    10**6,
    10**9,
    2**31,
    2**63,
    10**30,
    -(10**18),
    1e308,
    1e-320,
    float("nan"),
    float("inf"),
    "",
    "x",
    "0",
    "1e9",
    "x" * 100_000,
    "a\0b",
    "\ud800",
    "\x1b[2J",
    "[bold]",
    "[/foo]",
    "../..",
    "/etc/passwd",
    [],
    [[]],
    {},
    {"self": 1},
    {"": {}},
    [None] * 1_000,
)
KEYS = ("self", "cls", "__class__", "", "format", "kind", "a\0b", "\ud800", "x" * 10_000, "extra")
RAW = (
    b"",
    b"{",
    b"null",
    b"[]",
    b"3",
    b'"x"',
    b"NaN",
    b"\xff\xfe",
    b"\xef\xbb\xbf{}",
    b"{}{}",
    b"\0" * 99,
    b"[" * DEEP + b"]" * DEEP,
    b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    b"1" * 200_000,
    b'{"format": 1, "format": 2, "name": "x", "name": "y"}',
)


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

    def named(self) -> list[str]:
        """The files that the manifest names."""
        return sorted(json.loads((self.run / "manifest.json").read_bytes())["files"])

    def put(self, name: str, data: bytes, chance: Random) -> None:
        """Write a file, and mostly make the manifest name it with its hash."""
        (self.run / name).write_bytes(data)
        if name != "manifest.json" and chance.random() < 0.95:
            self.name(name, data)

    def name(self, name: str, data: bytes, size: int | None = None) -> None:
        """Make the manifest name a file with this content."""
        manifest = json.loads((self.run / "manifest.json").read_bytes())
        digest = hashlib.sha256(data).hexdigest()
        manifest["files"][name] = {"sha256": digest, "size": len(data) if size is None else size}
        (self.run / "manifest.json").write_text(json.dumps(manifest))


def mutated(data: Any, chance: Random) -> tuple[Any, str]:
    """JSON with one thing changed: a value, a key more, a key less, a key of another name."""
    places = list(_places(data, ()))
    place = chance.choice(places)
    holder = data
    for step in place[:-1]:
        holder = holder[step]
    key = place[-1]
    how = chance.choice(["value", "value", "value", "less", "more", "other"])
    if how == "value" or not isinstance(holder, dict):
        holder[key] = chance.choice([*VALUES, _near(holder[key], chance)])
        return data, f"{_path(place)} = {str(holder[key])[:40]!r}"
    if how == "less":
        del holder[key]
        return data, f"without {_path(place)}"
    name = chance.choice(KEYS)
    holder[name] = holder.pop(key) if how == "other" else chance.choice(VALUES)
    return data, f"{_path(place)}: {how} key {name[:20]!r}"


def _near(value: Any, chance: Random) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + chance.choice([-1, 1, 7, 1_000])
    return value[::-1] if isinstance(value, str | list) else value


def _places(data: Any, at: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        yield (*at, key)
        if isinstance(value, dict | list):
            yield from _places(value, (*at, key))


def _path(place: tuple[Any, ...]) -> str:
    return ".".join(str(step)[:30] for step in place)


def forged_json(world: World, chance: Random, name: str) -> str:
    """A JSON file of the run, changed once or twice, or nothing like it."""
    if chance.random() < 0.15:
        raw = chance.choice(RAW)
        world.put(name, raw, chance)
        return f"{name} is {raw[:20]!r}, {len(raw)} bytes"
    data, words = json.loads((world.run / name).read_bytes()), []
    for _ in range(chance.choice([1, 1, 2])):
        data, what = mutated(data, chance)
        words.append(what)
    text = json.dumps(data).encode()
    if chance.random() < 0.05:
        text = text.replace(b"{", b'{"format": 1, "kind": 3, ', 1)
        words.append("keys twice")
    world.put(name, text, chance)
    return f"{name}: {'; '.join(words)}"


def manifest(world: World, chance: Random) -> str:
    if chance.random() < 0.5:
        return forged_json(world, chance, "manifest.json")
    return hostile_name(world, chance)


def hostile_name(world: World, chance: Random) -> str:
    """The manifest names a file that it must not, with the right hash where there is one."""
    other = f"../{world.other.name}"
    names = [
        f"{other}/config.json",
        f"{other}/manifest.json",
        f"{other}/metrics/losses.parquet",
        f"metrics/../{other}/metrics/losses.parquet",
        f"metrics/part-/../../{other}/config.json",
        str(world.outside / "secret.txt"),
        "../../outside/secret.txt",
        "../../outside/part.parquet",
        str(world.outside / "part.parquet"),
        "metrics/part-../../../../outside/part.parquet",
        f"checkpoints/step-00000003.safetensors/../../../../outside/{'secret.txt'}",
        f"checkpoints/optimiser-/../../{other}/config.json",
        f"parameters/../{other}/config.json",
        "checkpoints/step-abc.safetensors",
        "checkpoints/step-.safetensors",
        "checkpoints/step-1",
        "checkpoints/step-99999999999999999999999.safetensors",
        "checkpoints/step--0000001.safetensors",
        "checkpoints/step-\u0663.safetensors",
        "checkpoints/optimiser-x.safetensors",
        "metrics/part-00000000-00000099.parquet",
        "metrics/*.parquet",
        "metrics/part-x'y.parquet",
        "answers/part-x.jsonl",
        "answers/../config.json",
        "circuit-seed-99.json",
        "circuit.json",
        ".lock",
        "manifest.json",
        "",
        ".",
        "..",
        "/",
        "metrics",
        "metrics/",
        "metrics//losses.parquet",
        "./config.json",
        "config.json/",
        "a\0b",
        "metrics/part-\0.parquet",
        "\ud800",
        "metrics/part-\ud800.parquet",
        "x" * 300,
        "x/" * 3_000,
        "CON",
        "checkpoints\\step-1",
    ]
    name = chance.choice(names)
    if chance.random() < 0.5 and name not in ("manifest.json", "config.json/"):
        donor = (world.run / chance.choice(world.named())).read_bytes()
        try:  # a file that is there, where a name like this can be had within the run
            inside = (world.run / name).resolve().is_relative_to(world.run.resolve())
            if inside and not (world.run / name).exists():
                (world.run / name).parent.mkdir(exist_ok=True)
                (world.run / name).write_bytes(donor)
        except (OSError, ValueError):
            pass
    try:
        data = (world.run / name).read_bytes()
    except (OSError, ValueError):
        data = b""
    world.name(name, data)
    return f"manifest names {name[:60]!r}"


def config(world: World, chance: Random) -> str:
    """A changed config; if it is one still, the manifest and the folder mostly get its name."""
    what = forged_json(world, chance, "config.json")
    try:
        name = read_recipe((world.run / "config.json").read_bytes()).run_name()
    except (HopscopeError, RecursionError, TypeError):
        return what
    if chance.random() < 0.9:
        content = json.loads((world.run / "manifest.json").read_bytes())
        content["name"] = name
        (world.run / "manifest.json").write_text(json.dumps(content))
        what += "; named for it"
    return what


def circuit(world: World, chance: Random) -> str:
    names = [name for name in world.named() if name.startswith("circuit")]
    if not names:
        return answers(world, chance)
    return forged_json(world, chance, chance.choice(names))


def answers(world: World, chance: Random) -> str:
    """A line of a benchmark's answers, changed."""
    names = [name for name in world.named() if name.startswith("answers")]
    if not names:
        return manifest(world, chance)
    name = chance.choice(names)
    lines = (world.run / name).read_bytes().splitlines()
    at = chance.randrange(len(lines))
    if chance.random() < 0.2:
        lines[at], what = chance.choice(RAW), "raw"
    else:
        data, what = mutated(json.loads(lines[at]), chance)
        lines[at] = json.dumps(data).encode()
    world.put(name, b"\n".join(lines), chance)
    return f"{name} line {at}: {what}"


def checkpoint(world: World, chance: Random) -> str:
    """A safetensors file with another header or with other numbers."""
    names = [name for name in world.named() if name.endswith(".safetensors")]
    if not names:
        return answers(world, chance)
    name = chance.choice(names)
    data = (world.run / name).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    how = chance.choice(["header", "header", "offsets", "length", "numbers", "meta", "empty"])
    if how == "header":
        header, how = mutated(header, chance)
    elif how == "offsets":
        tensor = chance.choice([key for key in header if key != "__metadata__"])
        wild = [0, 1, -1, 3, len(body), len(body) + 1, 2**31, 2**40, 2**63 - 1, 2**64 - 1]
        header[tensor]["data_offsets"] = [chance.choice(wild), chance.choice(wild)]
        if chance.random() < 0.5:
            header[tensor]["shape"] = [chance.choice([0, 1, -1, 2**20, 2**40, 2**63])] * 2
    elif how == "meta":
        inner = json.loads(header["__metadata__"]["hopscope"])
        inner, how = mutated(inner, chance)
        text = json.dumps(inner) if chance.random() < 0.8 else "[" * DEEP
        header["__metadata__"]["hopscope"] = text
    elif how == "numbers":
        value = chance.choice([float("nan"), float("inf"), 0.0, 1e38, -1e-45])
        body = struct.pack("<f", value) * (len(body) // 4) + bytes(len(body) % 4)
        how = f"all numbers {value}"
    text = json.dumps(header).encode()
    length = len(text) if how != "length" else chance.choice([0, 7, 10**6, 2**31, 2**63, 2**64 - 1])
    whole = b"" if how == "empty" else length.to_bytes(8, "little") + text + body
    world.put(name, whole, chance)
    return f"{name}: {how}"


def table(world: World, chance: Random) -> str:
    """A Parquet file with other columns, types and rows, or with bytes of its own changed."""
    names = [name for name in world.named() if name.endswith(".parquet")]
    if not names:
        return answers(world, chance)
    name = chance.choice(names)
    if chance.random() < 0.7:
        number = chance.randrange(len(world.parquet))
        world.put(name, world.parquet[number], chance)
        return f"{name} is table {number}: {TABLES[number][:60]}"
    data = bytearray((world.run / name).read_bytes())
    for _ in range(chance.choice([1, 3, 10])):
        data[chance.randrange(max(0, len(data) - 600), len(data))] = chance.randrange(256)
    world.put(name, bytes(data), chance)
    return f"{name}: bytes of its footer"


_ROW = "'train' as split, 1 as step, 0 as seed, 1::tinyint as hop"
TABLES = (
    f"select {_ROW}, 'nan'::float as loss",
    f"select {_ROW}, 'inf'::float as loss",
    f"select {_ROW}, null::float as loss",
    f"select {_ROW}, 'many' as loss",
    f"select {_ROW}, [1.5] as loss",
    f"select {_ROW}, {{'a': 1}} as loss",
    f"select {_ROW}, 0.5::float as loss, 7 as run",
    f"select {_ROW}, 0.5::float as loss, 'x' as filename",
    "select 1 as a",
    "select 'x' as split",
    f"select {_ROW}, 0.5::float as loss where false",
    "select 'train' as split, -1 as step, 0 as seed, 1::tinyint as hop, 0.5::float as loss",
    "select 'train' as split, 'x' as step, 'y' as seed, 'z' as hop, 0.5::float as loss",
    "select 'train' as split, 1 as step, 77 as seed, 1::tinyint as hop, 0.5::float as loss",
    "select 'train' as split, 1 as step, 0 as seed, -3::tinyint as hop, 0.5::float as loss",
    "select 'train' as split, 1 as step, 0 as seed, 127::tinyint as hop, 0.5::float as loss",
    "select 3 as split, 1 as step, 0 as seed, 1::tinyint as hop, 0.5::float as loss",
    "select 'train' as split, 2^62::bigint as step, 0 as seed, 1 as hop, 0.5::float as loss",
    "select null as split, null as step, null as seed, null as hop, null as loss",
    f"select {_ROW}, 0.5::float as loss from range(3)",
    "select * from range(10) t(step)",
    "select 0 as seed, 1 as step, 'c{1}' as name, 'nan'::double as value",
    "select 0 as seed, 1 as step, '\x1b[2J[bold]' as name, 1.0::double as value",
    "select 0 as seed, 1 as step, null as name, null::double as value",
    "select 'x' as seed, 'y' as step, 3 as name, 'z' as value",
    f"select {_ROW}, 0::float as loss from range({ROWS})",
    f"select 0 as seed, 0 as step, 'a' as name, 0::double as value from range({ROWS})",
)
"""What the forged tables hold, as SQL; the last two take a few kilobytes for each million rows."""


def parquet_files(folder: Path) -> tuple[bytes, ...]:
    """The forged tables. DuckDB makes threads: call it in a child."""
    import duckdb

    folder.mkdir(exist_ok=True)
    with duckdb.connect() as connection:
        for number, query in enumerate(TABLES):
            path = folder / f"{number:02d}.parquet"
            connection.execute(f"copy ({query}) to '{path}' (format parquet, compression zstd)")
    return tuple(path.read_bytes() for path in sorted(folder.glob("*.parquet")))


def kind_of_file(world: World, chance: Random) -> str:
    """Something else where a file or a folder of the run should be."""
    folders = ["metrics", "checkpoints", "answers", "parameters"]
    names = [*world.named(), "manifest.json", "manifest.json", ".lock", *folders]
    name = chance.choice(names)
    path = world.run / name
    if name in folders and not path.is_dir():
        return manifest(world, chance)
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
    old = path.read_bytes() if path.is_file() else b""
    if how != "link to the same outside" and (path.exists() or path.is_symlink()):
        path.rename(path.with_name(path.name + ".away")) if path.is_dir() else path.unlink()
    kinds[how](path, world.outside)
    if how == "hole" and name in world_names(world) and chance.random() < 0.5:
        world.name(name, old, HUGE)
    return f"{name} is a {how}"


def world_names(world: World) -> list[str]:
    """The files that the manifest names, if it can still be read."""
    path = world.run / "manifest.json"
    regular = path.exists() and stat.S_ISREG(path.lstat().st_mode) and path.stat().st_size < 2**20
    return world.named() if regular else []


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


FORGERIES: tuple[Callable[[World, Random], str], ...] = (
    manifest,
    manifest,
    manifest,
    config,
    config,
    circuit,
    checkpoint,
    checkpoint,
    table,
    table,
    kind_of_file,
    kind_of_file,
    kind_of_file,
    answers,
)


def forge(world: World, chance: Random) -> str:
    """One forgery, or two."""
    if chance.random() < 0.01:
        return whole_folder(world, chance)
    words = [chance.choice(FORGERIES)(world, chance)]
    if chance.random() < 0.2 and world_names(world):
        try:
            words.append(chance.choice(FORGERIES)(world, chance))
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            words.append("and what the first forgery left could not be forged again")
    return " + ".join(words)
