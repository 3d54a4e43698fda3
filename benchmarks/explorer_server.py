"""`hopscope view` in a separate process, for benchmarks."""

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CALL = "from hopscope.cli.main import main; main()"
URL = re.compile(r"http://127\.0\.0\.1:(\d+)/#once=")


@dataclass(frozen=True)
class Server:
    """A running server."""

    port: int
    token: str
    process: psutil.Process

    def ask(self, path: str, question: object = None) -> Any:
        """The answer to a request: a POST with `question` as JSON, or a GET without."""
        method, body = ("POST", json.dumps(question)) if question else ("GET", None)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            return json.loads(answer.read())
        finally:
            connection.close()

    def show(self, page: "Page", state: str, drawn: str, *, seconds: int = 120) -> None:
        """Open the explorer in this state, and wait for the condition `drawn`."""
        page.goto(f"http://127.0.0.1:{self.port}/#token={self.token}&{state}")
        page.wait_for_function(drawn, timeout=1_000 * seconds)

    def held(self) -> dict[str, float]:
        """The server's memory (MB), file descriptors and threads."""
        return {
            "mb": round(self.process.memory_info().rss / 2**20, 1),
            "descriptors": self.process.num_fds(),
            "threads": self.process.num_threads(),
        }


@contextmanager
def chromium() -> Iterator["Browser"]:
    """A headless Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@contextmanager
def started(store: Path | None = None) -> Iterator[Server]:
    """A server for this store, or without one for the gallery only."""
    with tempfile.TemporaryDirectory() as folder:
        root = store or Path(folder, "runs")
        line = [sys.executable, "-c", CALL, "view", "--no-browser", "--store", str(root)]
        clean = {name: value for name, value in os.environ.items() if name != "SSH_CONNECTION"}
        token = Path(folder, "token")
        clean["HOPSCOPE_TOKEN_FILE"] = str(token)
        with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=clean) as process:
            assert process.stdout is not None
            match = URL.match(process.stdout.readline())
            assert match is not None
            try:
                key = token.read_text().strip()
                yield Server(int(match[1]), key, psutil.Process(process.pid))
            finally:
                process.terminate()
