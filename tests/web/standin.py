"""What stands in for a store's views where only the server is tested; it notes what it is asked."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
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
        return self.answer("runs", since)

    def run(self, id_: str, seed: int | None = None) -> dict[str, Any]:
        return self.answer("run", self.known(id_), seed)

    def shown(self, id_: str, seed: int | None = None) -> "StandInModel":
        return StandInModel(self, self.known(id_), seed)

    def views(self, id_: str) -> dict[str, Any]:
        return self.answer("views", self.known(id_))

    def keep(self, id_: str, name: str, view: dict[str, Any]) -> None:
        self.answer("keep", self.known(id_), name, view)

    def told(self, error: Exception) -> str:
        return str(error).replace("/home/somebody/", "")

    def known(self, id_: str) -> str:
        if id_ != RUN:
            raise RunMissing("there is no such run")
        return id_

    def answer(self, *asked: object) -> dict[str, Any]:
        self.asked.append(" ".join(map(str, asked)))
        return {"asked": list(map(str, asked)), "data": SECRET, "nan": float("nan")}

    def work(self, ask: Ask) -> None:
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


@dataclass(frozen=True)
class StandInModel:
    """What stands in for a model of these views."""

    views: StandIn
    id: str
    seed: int | None

    def at_hand(self, name: str, _step: int | None) -> bytes | None:
        return SECRET.encode() if name == "losses" else None

    def arrays(self, name: str, step: int | None, ask: Ask) -> bytes:
        self.views.work(ask)
        self.views.answer("arrays", self.id, name, self.seed, step)
        return SECRET.encode()

    def example(self, asked: ExampleQuestion) -> bytes:
        self.views.answer("example", self.id, asked.index)
        return SECRET.encode()

    def ablate(self, asked: AblateQuestion, ask: Ask) -> dict[str, Any]:
        self.views.work(ask)
        return self.views.answer("ablate", asked.examples)

    def over_time(self, _: AblateQuestion, ask: Ask) -> Iterator[dict[str, Any]]:
        for step in range(3):
            self.views.work(ask)
            yield self.views.answer("over_time", step)
        if self.views.error is not None:
            raise self.views.error

    def costs(self, _: CostsQuestion, ask: Ask) -> Iterator[dict[str, Any]]:
        yield self.views.answer("costs", self.id, "\n{}\u2028")
        self.views.streaming += 1
        try:
            while self.views.endless:  # as long as somebody reads
                ask()
                yield {"more": SECRET * 1_000}
        finally:
            self.views.streaming -= 1
