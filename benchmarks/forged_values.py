"""What the forged files hold: JSON, names and tables that no program of good will would write."""

from pathlib import Path
from typing import Any

DEEP = 100_000
"""Brackets around nothing: 200 kB of nesting."""
ROWS = 200_000_000
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 3.5, 10**6, 10**9, 2**31, 2**63, 10**30, -(10**18), 1e308,
    1e-320, float("nan"), float("inf"), "", "x", "0", "1e9", "x" * 100_000, "a\0b", "\ud800",
    "\x1b[2J", "[bold]", "[/foo]", "../..", "/etc/passwd", [], [[]], {}, {"self": 1}, {"": {}},
    [None] * 1_000,
)  # fmt: skip
KEYS = ("self", "cls", "__class__", "", "format", "kind", "a\0b", "\ud800", "x" * 10_000, "extra")
RAW = (
    b"", b"{", b"null", b"[]", b"3", b'"x"', b"NaN", b"\xff\xfe", b"\xef\xbb\xbf{}", b"{}{}",
    b"\0" * 99, b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP, b"1" * 200_000,
    b'{"format": 1, "format": 2, "name": "x", "name": "y"}',
)  # fmt: skip


def hostile_names(run: str, outside: Path) -> list[str]:
    """Names that a manifest must not have, or that name nothing, or not what they say."""
    other = f"../{run}"
    return [
        f"{other}/config.json", f"{other}/manifest.json", f"{other}/metrics/losses.parquet",
        f"metrics/../{other}/metrics/losses.parquet", f"metrics/part-/../../{other}/config.json",
        str(outside / "secret.txt"), "../../outside/secret.txt", "../../outside/part.parquet",
        str(outside / "part.parquet"), "metrics/part-../../../../outside/part.parquet",
        "checkpoints/step-00000003.safetensors/../../../../outside/secret.txt",
        f"checkpoints/optimiser-/../../{other}/config.json", f"parameters/../{other}/config.json",
        "checkpoints/step-abc.safetensors", "checkpoints/step-.safetensors", "checkpoints/step-1",
        "checkpoints/step-99999999999999999999999.safetensors",
        "checkpoints/step--0000001.safetensors", "checkpoints/step-\u0663.safetensors",
        "checkpoints/optimiser-x.safetensors", "metrics/part-00000000-00000099.parquet",
        "metrics/*.parquet", "metrics/part-x'y.parquet", "answers/part-x.jsonl",
        "answers/../config.json", "circuit-seed-99.json", "circuit.json", ".lock", "manifest.json",
        "", ".", "..", "/", "metrics", "metrics/", "metrics//losses.parquet", "./config.json",
        "config.json/", "a\0b", "metrics/part-\0.parquet", "\ud800", "metrics/part-\ud800.parquet",
        "x" * 300, "x/" * 3_000, "CON", "checkpoints\\step-1",
    ]  # fmt: skip


_ROW = "'train' as split, 1 as step, 0 as seed, 1::tinyint as hop"
TABLES = (
    f"select {_ROW}, 'nan'::float as loss", f"select {_ROW}, 'inf'::float as loss",
    f"select {_ROW}, null::float as loss", f"select {_ROW}, 'many' as loss",
    f"select {_ROW}, [1.5] as loss", f"select {_ROW}, {{'a': 1}} as loss",
    f"select {_ROW}, 0.5::float as loss, 7 as run",
    f"select {_ROW}, 0.5::float as loss, 'x' as filename", "select 1 as a", "select 'x' as split",
    f"select {_ROW}, 0.5::float as loss where false",
    "select 'train' as split, -1 as step, 0 as seed, 1::tinyint as hop, 0.5::float as loss",
    "select 'train' as split, 'x' as step, 'y' as seed, 'z' as hop, 0.5::float as loss",
    "select 'train' as split, 1 as step, 77 as seed, 1::tinyint as hop, 0.5::float as loss",
    "select 'train' as split, 1 as step, 0 as seed, -3::tinyint as hop, 0.5::float as loss",
    "select 'train' as split, 1 as step, 0 as seed, 127::tinyint as hop, 0.5::float as loss",
    "select 3 as split, 1 as step, 0 as seed, 1::tinyint as hop, 0.5::float as loss",
    "select 'train' as split, 2^62::bigint as step, 0 as seed, 1 as hop, 0.5::float as loss",
    "select null as split, null as step, null as seed, null as hop, null as loss",
    f"select {_ROW}, 0.5::float as loss from range(3)", "select * from range(10) t(step)",
    "select 0 as seed, 1 as step, 'c{1}' as name, 'nan'::double as value",
    "select 0 as seed, 1 as step, '\x1b[2J[bold]' as name, 1.0::double as value",
    "select 0 as seed, 1 as step, null as name, null::double as value",
    "select 'x' as seed, 'y' as step, 3 as name, 'z' as value",
    f"select {_ROW}, 0::float as loss from range({ROWS})",
    f"select 0 as seed, 0 as step, 'a' as name, 0::double as value from range({ROWS // 4})",
)  # fmt: skip
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
