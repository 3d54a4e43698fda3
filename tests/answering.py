"""Servers in a thread of their own, which do not say what they are asked."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlparse

COMMIT = "0123456789abcdef0123456789abcdef01234567"
"""The one commit of a hub's repository."""


class Quiet:
    """Comes before the handler that does the work."""

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@contextmanager
def running(handler: Callable[..., Any]) -> Iterator[tuple[Any, str]]:
    """A server of this handler, and its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@contextmanager
def hub_running(hub: Any) -> Iterator[str]:
    """The address of a hub of models. `hub.answer(method, path, body)` returns a status and data;
    `hub.lacks` is its word for what is not there.
    """

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            path = urlparse(self.path).path
            status, data = hub.answer(self.command, path, self.rfile.read(length))
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("X-Error-Code", hub.lacks)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_POST = do_HEAD = do_GET  # noqa: N815

    with running(Handler) as (_, address):
        yield address
