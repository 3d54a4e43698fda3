"""Servers in a thread of their own, which do not say what they are asked."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import Any


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
