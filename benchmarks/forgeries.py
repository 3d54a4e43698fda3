"""Forged run folders: what a hostile or broken program might write where hopscope looks.

Each forgery changes one thing in a run folder, chosen by a random generator that the caller gives,
and says in words what it did. What is inside JSON, safetensors and Parquet is changed in its
structure, and the manifest then made to name it with the right hash.
"""

import json
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any

from forged_files import World, kind_of_file, whole_folder, world_names
from forged_values import DEEP, KEYS, RAW, TABLES, VALUES, hostile_names

from hopscope.configs import read_recipe
from hopscope.errors import HopscopeError


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
    data, words = json.loads(world.read(name)), []
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
    names = hostile_names(world.other.name, world.outside)
    name = chance.choice(names)
    if chance.random() < 0.5 and name not in ("manifest.json", "config.json/"):
        donor = world.read(chance.choice(world.named()))
        # A file that is there, where a name like this can be had within the run.
        with suppress(OSError, ValueError):
            inside = (world.run / name).resolve().is_relative_to(world.run.resolve())
            if inside and not (world.run / name).exists():
                (world.run / name).parent.mkdir(exist_ok=True)
                (world.run / name).write_bytes(donor)
    try:
        data = world.read(name)
    except (OSError, ValueError):
        data = b""
    world.name(name, data)
    return f"manifest names {name[:60]!r}"


def config(world: World, chance: Random) -> str:
    """A changed config; if it is one still, the manifest and the folder mostly get its name."""
    what = forged_json(world, chance, "config.json")
    try:
        name = read_recipe(world.read("config.json")).run_name()
    except (HopscopeError, RecursionError, TypeError):
        return what
    if chance.random() < 0.9:
        content = json.loads(world.read("manifest.json"))
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
    lines = world.read(name).splitlines()
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
    data = world.read(name)
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
    data = bytearray(world.read(name))
    for _ in range(chance.choice([1, 3, 10])):
        data[chance.randrange(max(0, len(data) - 600), len(data))] = chance.randrange(256)
    world.put(name, bytes(data), chance)
    return f"{name}: bytes of its footer"


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


UNFORGEABLE = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, MemoryError),
    RecursionError,
)
"""What a forgery may run into that finds another's work: a pipe, 30 GB, 200,000 brackets."""


def forge(world: World, chance: Random) -> str:
    """One forgery, or two."""
    if chance.random() < 0.01:
        return whole_folder(world, chance)
    words = []
    for _ in range(chance.choice([1, 1, 1, 1, 2])):
        if world_names(world):
            try:
                words.append(chance.choice(FORGERIES)(world, chance))
            except UNFORGEABLE as error:
                words.append(f"what the first left cannot be forged ({type(error).__name__})")
    return " + ".join(words)
