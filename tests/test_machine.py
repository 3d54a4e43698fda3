"""The machine, beside what the kernel says of it."""

import ctypes
import pathlib
import sys

import pytest

from hopscope.machine import keep_pages, memory_bytes

MEMINFO = pathlib.Path("/proc/meminfo")


@pytest.mark.skipif(not MEMINFO.exists(), reason="only Linux has /proc/meminfo")
def test_memory_is_all_that_the_kernel_knows_of() -> None:
    line = next(line for line in MEMINFO.read_text().splitlines() if line.startswith("MemTotal"))
    assert memory_bytes() == pytest.approx(int(line.split()[1]) * 1024, rel=0.01)


def test_pages_are_kept_where_there_is_glibc(monkeypatch: pytest.MonkeyPatch) -> None:
    has_mallopt = sys.platform.startswith("linux") and hasattr(ctypes.CDLL(None), "mallopt")
    assert keep_pages() == has_mallopt
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not keep_pages()
