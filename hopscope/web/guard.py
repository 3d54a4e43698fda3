"""Stands before the app: lets through what the policy allows and the limits hold, and puts the same
headers on every answer, errors included. Whatever goes wrong behind it ends here, as one line.
"""

import asyncio
import json
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hopscope.errors import HopscopeError
from hopscope.web.policy import API, Asked, Policy, Refused

Told = Callable[[HopscopeError], Refused]

SELF = "'self'"
CONTENT = {
    "default-src": "'none'",
    "script-src": SELF,
    "style-src": SELF,
    "img-src": f"{SELF} data:",
    "connect-src": SELF,
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
"""What the page may load, and from where: nothing that was not served with it."""
HEADERS = {
    "content-security-policy": "; ".join(f"{what} {where}" for what, where in CONTENT.items()),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Headers of every answer."""


@dataclass(frozen=True)
class Limits:
    """How much a request may take, and how long."""

    body_bytes: int = 256 * 1024
    sending: float = 10.0
    """Seconds in which a request has to arrive whole."""
    waiting: int = 16
    """Requests that compute, or wait for their turn."""
    computing: float = 30.0
    """Seconds in which an answer, or the next line of one, has to be there."""


class ClientLeft(Exception):
    """Whoever asked has closed the connection: nobody is there to be told anything."""


class Guard:
    """An ASGI app around another one."""

    def __init__(
        self,
        app: ASGIApp,
        policy: Policy,
        refusal_of: Told,
        note: Callable[[str], None],
        limits: Limits | None = None,
    ) -> None:
        self.app, self.policy, self.refusal_of, self.note = app, policy, refusal_of, note
        self.limits = limits or Limits()
        self._numbers = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, Reply(send, scope["path"]))
        else:  # a WebSocket: there are none
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, reply: "Reply") -> None:
        try:
            asked = Asked.of(scope)
            self.policy.check(asked)
            body = await self._body(asked, receive)
            await self.app(scope, _again(body, receive), reply)
        except ClientLeft:
            return
        except asyncio.CancelledError:
            await reply.refuse(Refused(503, "the server ends: start `hopscope view` again"))
            raise
        except Refused as error:
            await reply.refuse(error)
        except HopscopeError as error:
            await reply.refuse(self.refusal_of(error))
        except Exception as error:  # noqa: BLE001  (a mistake of ours, told in the terminal)
            await reply.refuse(self._noted(error))

    async def _body(self, asked: Asked, receive: Receive) -> bytes:
        """All that is sent, if it is not too much and does not take too long."""
        if int(asked.one(b"content-length") or 0) > self.limits.body_bytes:
            raise self._too_long()
        try:
            async with asyncio.timeout(self.limits.sending):
                return await self._read(receive)
        except TimeoutError:
            raise Refused(408, f"expected a request within {self.limits.sending:g} s") from None

    async def _read(self, receive: Receive) -> bytes:
        data = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientLeft
            data += bytes(message.get("body", b""))
            if len(data) > self.limits.body_bytes:
                raise self._too_long()
            if not message.get("more_body", False):
                return data

    def _too_long(self) -> Refused:
        return Refused(413, f"expected a body of at most {self.limits.body_bytes // 1024} kB")

    def _noted(self, error: Exception) -> Refused:
        """Of a mistake of ours the client is told a number, and the terminal everything."""
        number = next(self._numbers)
        self.note(f"error {number} of this server, a mistake of hopscope:")
        for line in "".join(traceback.format_exception(error)).splitlines():
            self.note(line)
        return Refused(500, f"a mistake of hopscope: see error {number} in its terminal")


class Reply:
    """Sends an answer, with the headers that every answer has."""

    def __init__(self, send: Send, path: str) -> None:
        self._send, self._path = send, path
        self.begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            shell = message["status"] == 200 and not self._path.startswith(API)
            message = {**message, "headers": _with_ours(message.get("headers", ()), shell)}
        await self._send(message)

    async def refuse(self, refused: Refused) -> None:
        """Answer with a line and a status; what was not read of the request is not waited for."""
        if self.begun:  # half of an answer went out: the connection ends
            raise refused
        answer = json.dumps({"error": str(refused), "status": refused.status}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(answer)).encode()),
            (b"connection", b"close"),
            *([(b"retry-after", b"1")] if refused.status == 503 else []),
        ]
        await self({"type": "http.response.start", "status": refused.status, "headers": headers})
        await self({"type": "http.response.body", "body": answer})


def _with_ours(given: Iterable[tuple[bytes, bytes]], shell: bool) -> list[tuple[bytes, bytes]]:
    """The headers of an answer, of which ours cannot be replaced."""
    ours = HEADERS | {"cache-control": "no-cache" if shell else "no-store"}
    kept = [(name, value) for name, value in given if name.decode().lower() not in ours]
    return kept + [(name.encode(), value.encode()) for name, value in ours.items()]


def _again(body: bytes, receive: Receive) -> Receive:
    """Receives a body that was read already, and then whatever comes."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return left.pop() if left else await receive()

    return receive_again
