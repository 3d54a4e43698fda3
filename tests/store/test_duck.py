import os
import signal
import subprocess
import sys
import threading
import time

import duckdb
import pytest

from hopscope.store.duck import connected, execute

FOREVER = "select sum(a.i * b.i) from range(10000000) a(i), range(10000000) b(i)"


def test_values_come_back() -> None:
    with connected() as connection:
        assert execute(connection, "select $x + 1", {"x": 1}) == [(2,)]
        assert execute(connection, "select 1 as a", None, "fetchnumpy")["a"].tolist() == [1]
        with pytest.raises(duckdb.Error, match="Catalog Error"):
            execute(connection, "select * from nothing")


def test_ctrl_c_ends_a_query_at_once() -> None:
    def press() -> None:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    begun = time.monotonic()
    threading.Thread(target=press).start()
    with connected() as connection, pytest.raises(KeyboardInterrupt):
        execute(connection, FOREVER)
    assert time.monotonic() - begun < 60  # it would take years


def test_the_processes_database_can_be_closed_before_a_fork() -> None:
    code = (
        "import os; from hopscope.store import duck\n"
        "def threads(): return len(os.listdir('/proc/self/task'))\n"
        "before = threads()\n"
        "with duck.connected() as connection: duck.execute(connection, 'select 1')\n"
        "duck.close(); assert threads() == before"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
