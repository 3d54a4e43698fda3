"""The machine, beside what the kernel says of it."""

import ctypes
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from hopscope.errors import ConfigError
from hopscope.machine import allow_many_files, cache_root, memory_bytes

MEMINFO = Path("/proc/meminfo")
HAS_MALLOPT = sys.platform.startswith("linux") and hasattr(ctypes.CDLL(None), "mallopt")
LIBRARY = """
import hopscope as h
from hopscope.models.planted import planted
h.train(h.Experiment(training=h.Training(steps=1, batch=4, validation_examples=8)))
p = planted(h.Retrieval(hops=1, chains=2, dim=4, symbols='one-hot'))
h.discover(p.model, p.task, examples=64)"""
FREED = """
def resident():
    return int(open('/proc/self/statm').read().split()[1]) * os.sysconf('SC_PAGE_SIZE')
before = resident()
block = numpy.ones(2**24)  # 128 MiB
del block
print(resident() - before)"""
"""What the process still holds of a large block that was freed."""


@pytest.mark.skipif(not MEMINFO.exists(), reason="only Linux has /proc/meminfo")
def test_memory_is_all_that_the_kernel_knows_of() -> None:
    line = next(line for line in MEMINFO.read_text().splitlines() if line.startswith("MemTotal"))
    assert memory_bytes() == pytest.approx(int(line.split()[1]) * 1024, rel=0.01)


@pytest.mark.skipif(not HAS_MALLOPT, reason="only glibc can be told")
@pytest.mark.parametrize(
    ("before", "kept"),
    [
        ("from hopscope.machine import keep_pages; assert keep_pages()", True),
        pytest.param(LIBRARY, False, marks=pytest.mark.slow),
    ],
)
def test_memory_is_kept_where_it_is_asked_for(tmp_path: Path, before: str, kept: bool) -> None:
    """The command line asks for it; a library function must leave its process as it was."""
    code = f"import numpy, os\n{before}\n{FREED}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path,
        timeout=600,
    )  # fmt: skip
    assert (int(done.stdout) > 2**26) == kept


def test_the_cache_is_where_it_is_said_or_below_the_home_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for said, folder in (("here", Path("here")), ("", Path.home() / ".cache" / "hopscope")):
        monkeypatch.setenv("HOPSCOPE_CACHE", said)
        assert cache_root() == folder

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(
        ConfigError, match="no home folder for the cache: set HOPSCOPE_CACHE to a folder"
    ):
        cache_root()


def test_more_files_may_be_open_than_a_shell_allows() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    allow_many_files()
    found = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert found == (min(4096, hard), hard)
