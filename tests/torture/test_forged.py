"""Run folders that were damaged or forged: commands end in words, and touch nothing else."""

import hashlib
import json
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from torture.harness import Ended, done, hopscope_, train_words, transformer

from hopscope.store import Store
from hopscope.store.manifest import CHECK, _digest, read_manifest

pytestmark = pytest.mark.slow
DAMAGES, FORGERIES = 12, 20
ADDRESSES = 10 * 2**30
"""Bytes of addresses that a command may have, lest a failure takes the machine."""
SECONDS = 60.0
SECRET = "CANARY-6b1f"
HUGE, DEEP = 30 * 2**30, 100_000
QUERY = "select run, split, step, seed, hop, loss from metrics order by all"
LISTS = {"runs": ("runs",), "sql": ("sql", QUERY, "--csv")}
READS: dict[str, tuple[str, ...]] = {
    "show": ("show", "RUN"),
    "circuit": ("circuit", "RUN"),
    "attention": ("attention", "RUN", "--examples", "8", "--figure", "maps.svg"),
}
WRITES: dict[str, tuple[str, ...]] = {
    "resume": ("resume", "RUN", "--device", "cpu", "--threads", "1"),
    "search": ("circuit", "RUN", "--all", "--again", "--force", "--examples", "16"),
    "rm": ("rm", "RUN", "--yes"),
}
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 3.5, 10**9, 2**63, 10**30, 1e308, float("nan"), float("inf"), "", "x",
    "x" * 100_000, "a\0b", "\ud800", "\x1b[2J", "[/foo]", "../..", "/etc/passwd", [], {}, [[]],
    {"self": 1}, [None] * 1_000,
)  # fmt: skip
RAW = (
    b"", b"{", b"null", b"3", b"NaN", b"\xff\xfe", b"{}{}", b"[" * DEEP, b'{"a":' * DEEP,
    b"1" * 200_000,
)  # fmt: skip
NAMES = (
    "../OTHER/config.json", "metrics/../../OTHER/metrics/losses.parquet", "/etc/passwd",
    "../../outside/secret.txt", "checkpoints/step-x.safetensors", "metrics/*.parquet", ".lock",
    "metrics/part-00000000-00000099.parquet", "", "..", "metrics/", "a\0b", "x/" * 3_000,
)  # fmt: skip
KINDS: dict[str, Callable[[Path, Path], object]] = {
    "link": lambda path, outside: path.symlink_to(outside / "secret.txt"),
    "folder link": lambda path, outside: path.symlink_to(outside),
    "loop": lambda path, _: path.symlink_to(path.name),
    "endless": lambda path, _: path.symlink_to("/dev/zero"),
    "pipe": lambda path, _: os.mkfifo(path),
    "folder": lambda path, _: path.mkdir(),
    "hole": lambda path, _: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), HUGE),
}


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a run that has a circuit, and another; beside the store lies a secret."""
    root = tmp_path_factory.mktemp("given")
    for number, seed in enumerate((0, 1)):
        words = train_words(root, transformer(seed), f"{number}.json")
        assert done(hopscope_, root, *words).code == 0
    discover = of(transformer().run_name(), WRITES["search"])
    assert done(hopscope_, root, *discover).code == 0
    (root / "outside").mkdir()
    (root / "outside" / "secret.txt").write_text(SECRET)
    return root


def of(run: str, words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(run if each == "RUN" else each for each in words)


class World:
    """A copy of it, in which the run is harmed."""

    def __init__(self, given: Path, folder: Path) -> None:
        self.root = shutil.copytree(given, folder)
        self.name, self.other = (transformer(seed).run_name() for seed in (0, 1))
        self.run, self.outside = self.root / "runs" / self.name, self.root / "outside"
        self.files = sorted(Store(given / "runs").find(self.name).manifest.files)

    def call(self, words: tuple[str, ...]) -> Ended:
        return done(_limited, self.root, of(self.name, words), limit=SECONDS)

    def around(self) -> dict[str, bytes]:
        """What must stay as it is."""
        folders = (self.outside, self.root / "runs" / self.other)
        paths = [path for folder in folders for path in sorted(folder.rglob("*"))]
        return {str(path): path.read_bytes() for path in paths if path.is_file()}

    def put(self, name: str, data: bytes) -> None:
        """Write a file, and make the manifest name it with its hash."""
        (self.run / name).write_bytes(data)
        self.name_it(name, data)
        read_manifest(self.run)  # is whole: commands read the file

    def name_it(self, name: str, data: bytes) -> None:
        manifest = json.loads((self.run / "manifest.json").read_text())
        digest = hashlib.sha256(data).hexdigest()
        manifest["files"][name] = {"sha256": digest, "size": len(data)}
        (self.run / "manifest.json").write_bytes(signed(manifest))


def signed(manifest: dict[str, Any]) -> bytes:
    """The manifest with its own hash, which a forger can compute."""
    manifest.pop(CHECK, None)
    return json.dumps(manifest | {CHECK: _digest(manifest)}).encode()


def _limited(root: Path, words: tuple[str, ...]) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    return hopscope_(root, *words)


def damage(world: World, kind: str, chance: Random) -> str:
    """Harm a committed file as a disk does."""
    name = chance.choice([*world.files, "manifest.json"])
    other = chance.choice([each for each in world.files if each != name])
    path = world.run / name
    data = bytearray(path.read_bytes())
    at = chance.randrange(len(data) - 1)  # of a manifest the line's end means nothing
    if kind == "cut":
        del data[at:]
    elif kind == "flip":
        data[at] ^= 1 << chance.randrange(8)
    elif kind == "swap":
        data[:] = (world.run / other).read_bytes()
    path.unlink() if kind == "remove" else path.write_bytes(data)
    return f"{kind} {name} at {at}"


def places(data: Any) -> Iterator[tuple[Any, Any]]:
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        yield data, key
        if isinstance(value, dict | list):
            yield from places(value)


def forge(world: World, chance: Random) -> str:
    """Make the run what somebody of ill will might make it."""
    how = chance.choice(["kind", "name", "raw", "json", "json", "json", "tensors", "bytes"])
    name = chance.choice([*world.files, "manifest.json"])
    texts = [each for each in (*world.files, "manifest.json") if each.endswith(".json")]
    if how == "kind":
        kind = chance.choice([*KINDS])
        (world.run / name).unlink()
        KINDS[kind](world.run / name, world.outside)
        return f"{name} is a {kind}"
    if how == "name":
        name = chance.choice(NAMES).replace("OTHER", world.other)
        world.name_it(name, SECRET.encode())
        return f"the manifest names {name[:40]!r}"
    if how == "raw":
        data = chance.choice(RAW)
    elif how == "json":
        name = chance.choice(texts)
        content = json.loads((world.run / name).read_bytes())
        content.pop(CHECK, None)
        holder, key = chance.choice([*places(content)])
        holder[key] = chance.choice(VALUES)
        data = signed(content) if name == "manifest.json" else json.dumps(content).encode()
        how = f"{key} = {str(holder[key])[:20]!r}"
    else:
        suffix = ".safetensors" if how == "tensors" else ".parquet"
        name = chance.choice([each for each in world.files if each.endswith(suffix)])
        whole = bytearray((world.run / name).read_bytes())
        head = int.from_bytes(whole[:8], "little") if how == "tensors" else len(whole)
        for _ in range(3):  # of its header, or of its footer
            whole[chance.randrange(8 if how == "tensors" else max(0, head - 600), head)] = (
                chance.randrange(256)
            )
        data = bytes(whole)
    if name == "manifest.json":
        (world.run / name).write_bytes(data)
    else:
        world.put(name, data)
    return f"{name}: {how}"


def check(world: World, words: tuple[str, ...], how: str) -> Ended:
    """Call a command, which must keep its manners."""
    before = world.around()
    found = world.call(words)
    assert found.rude == "", (how, words)
    assert SECRET not in found.out + found.err, (how, words)
    assert "\x1b" not in found.err + found.out, (how, words)
    assert world.around() == before, (how, words)
    if words in LISTS.values():
        assert world.other in found.out, (how, words)
    return found


def test_damage_is_found_or_does_not_matter(given: Path, tmp_path: Path) -> None:
    whole = World(given, tmp_path / "whole")
    usual = {name: whole.call(words) for name, words in (LISTS | READS).items()}
    assert {each.code for each in usual.values()} == {0}
    chance = Random(45)
    for number in range(DAMAGES):
        world = World(given, tmp_path / str(number))
        how = damage(world, ["cut", "flip", "remove", "swap"][number % 4], chance)
        verify = check(world, ("verify", "RUN"), how)
        assert verify.code, how
        assert verify.told, how
        for name in chance.sample([*usual], 2):
            found = check(world, (LISTS | READS)[name], how)
            assert found.told or found.out == usual[name].out, (how, name)  # not in silence
        check(world, WRITES[chance.choice([*WRITES])], how)
        shutil.rmtree(world.root)


def test_forged_runs_end_in_words_and_touch_nothing_else(given: Path, tmp_path: Path) -> None:
    chance = Random(45)
    for number in range(FORGERIES):
        world = World(given, tmp_path / str(number))
        how = forge(world, chance)
        (world.run / "notes.md").write_text("mine")
        for words in (*LISTS.values(), ("verify", "RUN"), READS[chance.choice([*READS])]):
            check(world, words, how)
        name = chance.choice([*WRITES])
        check(world, WRITES[name], how)
        assert name == "rm" or (world.run / "notes.md").read_text() == "mine", how
        shutil.rmtree(world.root)
