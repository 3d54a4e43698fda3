"""What stands in for a store's views where only the server is tested; it notes what it is asked."""

import threading
import time
from collections.abc import Iterator
from typing import Any

from hopscope.errors import HopscopeError, RunMissing
from hopscope.web.questions import AblateQuestion, Ask, CostsQuestion, ExampleQuestion

RUN = "gallery-demo"
SECRET = "attention"
"""Stands in every answer that holds data."""


class StandIn:
    """Answers at once, or (`slow`) computes until nobody waits."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.slow, self.endless = 0.0, False
        self.working, self.most, self.stopped, self.streaming = 0, 0, 0, 0
        self.error: Exception | None = None
        self._lock = threading.Lock()

    def runs(self, since: str = "") -> dict[str, Any]:
        return self._answer("runs", since)

    def run(self, id_: str, seed: int | None = None) -> dict[str, Any]:
        return self._answer("run", self._known(id_), seed)

    def at_hand(
        self, id_: str, name: str, seed: int | None = None, step: int | None = None
    ) -> bytes | None:
        self._known(id_)
        return SECRET.encode() if name == "losses" else None

    def arrays(self, id_: str, name: str, seed: int | None, step: int | None, ask: Ask) -> bytes:
        self._work(ask)
        self._answer("arrays", self._known(id_), name, seed, step)
        return SECRET.encode()

    def example(self, id_: str, asked: ExampleQuestion) -> bytes:
        self._answer("example", self._known(id_), asked.index)
        return SECRET.encode()

    def ablate(self, id_: str, asked: AblateQuestion, ask: Ask) -> dict[str, Any]:
        self._known(id_)
        self._work(ask)
        return self._answer("ablate", asked.examples)

    def over_time(self, id_: str, asked: AblateQuestion, ask: Ask) -> Iterator[dict[str, Any]]:
        self._known(id_)
        for step in range(3):
            self._work(ask)
            yield self._answer("over_time", step)
        if self.error is not None:
            raise self.error

    def costs(self, id_: str, asked: CostsQuestion, ask: Ask) -> Iterator[dict[str, Any]]:
        yield self._answer("costs", self._known(id_), "\n{}\u2028")
        self.streaming += 1
        try:
            while self.endless:  # as long as somebody reads
                ask()
                yield {"more": SECRET * 1_000}
        finally:
            self.streaming -= 1

    def views(self, id_: str) -> dict[str, Any]:
        return self._answer("views", self._known(id_))

    def keep(self, id_: str, name: str, view: dict[str, Any]) -> None:
        self._answer("keep", self._known(id_), name, view)

    def told(self, error: Exception) -> str:
        return str(error).replace("/home/somebody/", "")

    def _known(self, id_: str) -> str:
        if id_ != RUN:
            raise RunMissing("there is no such run")
        return id_

    def _answer(self, *asked: object) -> dict[str, Any]:
        self.asked.append(" ".join(map(str, asked)))
        return {"asked": list(map(str, asked)), "data": SECRET, "nan": float("nan")}

    def _work(self, ask: Ask) -> None:
        with self._lock:
            self.working += 1
            self.most = max(self.most, self.working)
        end = time.monotonic() + self.slow
        try:
            while time.monotonic() < end:
                ask()
                time.sleep(0.002)
        except HopscopeError:
            self.stopped += 1
            raise
        finally:
            with self._lock:
                self.working -= 1
