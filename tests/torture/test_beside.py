"""Readers beside trainings, and a server beside bad clients: all of them are answered."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random

import pytest
from torture.harness import LIMIT, committed, ended, hopscope_, started, train_words, transformer

from hopscope.store import Store
from hopscope.training import Run

pytestmark = pytest.mark.slow
TRAININGS = 5
QUERY = (
    "select r.name, count(m.step) from runs r left join metrics m on m.run = r.name group by all"
)


def reads(store: Path, mark: Path) -> int:
    """From Python: losses and models of every run, again and again until all is done."""
    while not mark.exists():
        for name in Store(store).names():
            run = Run(Store(store).find(name))
            steps, values = run.losses("train")
            assert list(steps) == list(range(1, len(values) + 1))
            for step in run.checkpoints[-1:]:
                run.model_at(step)
    return 0


def asks(folder: Path, mark: Path, *words: str) -> int:
    """At the command line; every run that was there before must be told of."""
    while not mark.exists():
        names = Store(folder / "runs").names()
        place = os.lseek(1, 0, os.SEEK_END)
        assert hopscope_(folder, *words) == 0
        sys.stdout.flush()
        told = Path("/proc/self/fd/1").read_bytes()[place:].decode()
        assert words[0] == "verify" or all(name in told for name in names)
    return 0


def test_readers_beside_trainings_see_every_run(tmp_path: Path) -> None:
    recipes = [transformer(seed, steps=40) for seed in range(TRAININGS)]
    others = range(1, TRAININGS)
    mark, first = tmp_path / "done", recipes[0].run_name()
    words = [train_words(tmp_path, each, f"{n}.json") for n, each in enumerate(recipes)]
    begin = started(tmp_path / "first", hopscope_, tmp_path, *words[0])
    assert ended(begin, tmp_path / "first").rude == ""
    readers = {
        "reads": (reads, tmp_path / "runs", mark),
        "runs": (asks, tmp_path, mark, "runs"),
        "sql": (asks, tmp_path, mark, "sql", QUERY, "--csv"),
        "verify": (asks, tmp_path, mark, "verify", first),
    }
    processes = {name: started(tmp_path / name, *work) for name, work in readers.items()}
    try:
        trainings = {
            n: started(tmp_path / f"train-{n}", hopscope_, tmp_path, *words[n]) for n in others
        }
        for number, process in trainings.items():
            found = ended(process, tmp_path / f"train-{number}")
            assert (found.code, found.rude) == (0, "")
    finally:
        mark.touch()  # or the readers would go on, and pytest would wait for them at its end
    for name, process in processes.items():
        found = ended(process, tmp_path / name)
        assert found.code == 0, (name, found.err)
        assert found.err == "", name
    assert len(committed(tmp_path / "runs")) == TRAININGS


class Server:
    """`hopscope view` of the gallery, in a process of its own."""

    def __init__(self, process: "subprocess.Popen[str]", port: int, token: str) -> None:
        self.process, self.port, self.token = process, port, token

    def request(self, method: str, path: str, body: bytes = b"") -> bytes:
        lines = [
            f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {self.token}",
            "Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close",
        ]  # fmt: skip
        return "\r\n".join([*lines, "", ""]).encode() + body

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT)

    def table(self) -> int:
        """The status of the table of runs."""
        with self.connect() as client:
            client.sendall(self.request("GET", "/api/runs"))
            return int(client.makefile("rb").readline().split()[1])

    def held(self) -> tuple[int, int]:
        """Descriptors and threads."""
        own = Path(f"/proc/{self.process.pid}")
        return len([*(own / "fd").iterdir()]), len([*(own / "task").iterdir()])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    command = [
        sys.executable,
        "-m",
        "hopscope",
        "view",
        "--no-browser",
        "--store",
        str(tmp_path / "runs"),
    ]
    settings = {k: v for k, v in os.environ.items() if k != "SSH_CONNECTION"}
    settings["HOPSCOPE_TOKEN_FILE"] = str(tmp_path / "token")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=settings) as process:
        assert process.stdout is not None
        watch = threading.Timer(600, process.kill)  # the line that is waited for may never come
        watch.start()
        try:
            found = None
            while found is None:
                line = process.stdout.readline()
                assert line, "the server has ended"
                found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
            yield Server(process, int(found[1]), (tmp_path / "token").read_text().strip())
        finally:
            watch.cancel()
            process.kill()


def half_open(server: Server, stack: ExitStack, number: int) -> None:
    """Half a request, and no more."""
    text = server.request("GET", "/api/runs")
    stack.enter_context(server.connect()).sendall((b"", b"GET /api", text[:-2])[number % 3])


def slow(server: Server, stack: ExitStack, _: int) -> None:
    """Asks, and never reads the answer."""
    client = stack.enter_context(server.connect())
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
    client.sendall(server.request("POST", "/api/runs/gallery-demo/costs", b'{"examples": 8}'))


def leaving(server: Server, _: ExitStack, number: int) -> None:
    """Asks for much, and goes before the answer, or in the middle of the question."""
    body = json.dumps({"examples": 4_096}).encode()
    text = server.request("POST", "/api/runs/gallery-demo/ablate", body)
    with server.connect() as client:
        client.sendall(text[: Random(number).randint(1, len(text))])


def test_a_server_answers_beside_bad_clients_and_holds_nothing_of_them(server: Server) -> None:
    assert server.table() == 200
    before, statuses = server.held(), []

    def annoy(bad: Callable[[Server, ExitStack, int], None], count: int) -> None:
        with ExitStack() as stack:
            for number in range(count):
                with suppress(OSError):  # a connection may be given up when many are open
                    bad(server, stack, number)
            ready.wait(LIMIT)

    ready = threading.Barrier(4)
    works = ((half_open, 100), (slow, 10), (leaving, 20))
    threads = [threading.Thread(target=annoy, args=work) for work in works]
    for thread in threads:
        thread.start()
    statuses += [server.table() for _ in range(20)]
    ready.wait(LIMIT)
    for thread in threads:
        thread.join()
    assert statuses == [200] * 20
    end = time.monotonic() + LIMIT
    while server.held()[0] > before[0] and time.monotonic() < end:
        time.sleep(0.1)
    descriptors, tasks = server.held()
    assert descriptors <= before[0]
    assert tasks <= before[1] + 8  # those who compute were started meanwhile
    assert server.table() == 200
