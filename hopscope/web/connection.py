"""A connection that is given up when its client keeps it waiting, and makes room for others.

uvicorn waits for ever for the rest of a request, and for a reader that does not read. Here a client
has ten seconds for either. When many are connected, those go that have kept us waiting longest, and
for half a second at least: who sends a request at once is answered, whatever hangs beside it.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from h11 import LocalProtocolError, Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from hopscope.web.guard import HEADERS

MOST, CROWD = 64, 512
"""Connections at a time; so many if all of them are new, or have their requests answered."""
PATIENCE = 10.0
"""Seconds that a client has to send the head of a request, or to go on reading an answer."""
NEW = 1 / 20
"""The share of this time in which nobody is sent away."""


Act = Callable[[], None]


class Timer:
    """Calls something after a while, unless it is stopped before."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, act: Act) -> None:
        self._loop, self._seconds, self._act = loop, seconds, act
        self._handle: asyncio.TimerHandle | None = None

    @property
    def when(self) -> float | None:
        """The time of the loop at which it acts; None if it is stopped."""
        return self._handle.when() if self._handle else None

    def start(self) -> None:
        """Begin to wait, anew if it waits already."""
        self.stop()
        self._handle = self._loop.call_later(self._seconds, self._act)

    def stop(self) -> None:
        """Do not act."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


class Connection(H11Protocol):
    """One client's connection, over HTTP/1.1."""

    most, crowd, patience = MOST, CROWD, PATIENCE

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.asking = Timer(self.loop, self.patience, self.give_up)
        self.reading = Timer(self.loop, self.patience, self.give_up)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody connects; where no room is left, somebody else goes."""
        super().connection_made(transport)
        self.asking.start()
        while len(self.connections) > self.most and (waiting := self._waiting()):
            until, longest = min(waiting, key=lambda each: each[0])
            is_new = until > self.loop.time() + self.patience * (1 - NEW)
            if is_new and len(self.connections) <= self.crowd:
                break
            longest.give_up()

    def data_received(self, data: bytes) -> None:
        """Some bytes; perhaps a request is whole with them."""
        super().data_received(data)
        if self._is_answering():
            self.asking.stop()

    def on_response_complete(self) -> None:
        """An answer went out; the next request may follow, or be there."""
        super().on_response_complete()
        if not self._is_answering():
            self.asking.start()

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        self.reading.start()

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        self.reading.stop()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        super().connection_lost(exc)
        self.asking.stop()
        self.reading.stop()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is answered with the headers of every answer, too."""
        ours = HEADERS | {"content-length": "0", "connection": "close", "cache-control": "no-store"}
        headers = [(name.encode(), value.encode()) for name, value in ours.items()]
        with suppress(LocalProtocolError):  # an answer went out already
            answer = Response(status_code=400, headers=headers, reason=msg.encode())
            self.transport.write(self.conn.send(answer) or b"")
        self.transport.close()

    def give_up(self) -> None:
        """End the connection, whatever is still to be sent."""
        self.asking.stop()
        self.connections.discard(self)
        self.transport.abort()

    def _waiting(self) -> list[tuple[float, "Connection"]]:
        """Those whose requests are not there, each with the time until which that is allowed."""
        ours = [each for each in self.connections if isinstance(each, Connection)]
        return [(each.asking.when, each) for each in ours if each.asking.when is not None]

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete
