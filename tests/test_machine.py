"""The machine, beside what the kernel says of it."""

import pathlib

import pytest

from hopscope.machine import memory_bytes

MEMINFO = pathlib.Path("/proc/meminfo")


@pytest.mark.skipif(not MEMINFO.exists(), reason="only Linux has /proc/meminfo")
def test_memory_is_all_that_the_kernel_knows_of() -> None:
    line = next(line for line in MEMINFO.read_text().splitlines() if line.startswith("MemTotal"))
    assert memory_bytes() == pytest.approx(int(line.split()[1]) * 1024, rel=0.01)
