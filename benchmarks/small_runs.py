"""Small runs of every kind, made in seconds, for the scripts that kill, damage and forge them.

    transformer   one model over vectors
    learned       the same, trained until its circuit has paths
    fleet         two models over tokens, trained as one
    ngram         the n-gram experiment, two seeds
    bench         questions in words to a fake endpoint that runs in a process of its own

Each can be made whole, or stopped in the middle as a signal stops it.
"""

import json
import os
import signal
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from hopscope.configs import (
    Asking,
    Descent,
    Experiment,
    InductionModel,
    KHop,
    LlmBench,
    MarkovExperiment,
    MarkovProcess,
    Model,
    Prompts,
    Recipe,
    Retrieval,
    Training,
)
from hopscope.errors import Interrupted
from hopscope.runs import train
from hopscope.store import RunFolder, Store

KINDS = ("transformer", "fleet", "ngram", "bench")
TRAINING = Training(
    steps=6,
    batch=8,
    examples=64,
    checkpoint_every=3,
    validate_every=3,
    validation_examples=16,
    precision="float32",
)


def transformer(seed: int = 0, steps: int = TRAINING.steps) -> Experiment:
    task, model = Retrieval(hops=1, chains=2), Model(layers=2, heads=1, d_model=16)
    training = TRAINING.model_copy(update={"steps": steps})
    return Experiment(task=task, model=model, training=training, seeds=(seed,))


def learned(seed: int = 0) -> Experiment:
    """A transformer that has learned its task: its circuit has paths. Five seconds."""
    changes = {"steps": 300, "batch": 32, "examples": 2**12, "lr": 1e-2, "schedule": "cosine"}
    changes |= {"warmup": 30, "checkpoint_every": 150, "validate_every": 150}
    task, model = Retrieval(hops=1, chains=2, base=10.0), Model(layers=2, heads=1, d_model=16)
    training = TRAINING.model_copy(update=changes)
    return Experiment(task=task, model=model, training=training, seeds=(seed,))


def fleet(seed: int = 0) -> Experiment:
    task, model = KHop(hops=1, alphabet=3, length=6), Model(layers=2, heads=1, d_model=16)
    return Experiment(task=task, model=model, training=TRAINING, seeds=(seed, seed + 1))


def ngram(seed: int = 0) -> MarkovExperiment:
    return MarkovExperiment(
        process=MarkovProcess(alphabet=2, length=12),
        model=InductionModel(heads=2, window=2),
        descent=Descent(epochs=(4, 4, 4), chains=24, validation_chains=12, records=3),
        seeds=(seed, seed + 1),
    )


def bench(url: str, seed: int = 0) -> LlmBench:
    asking = Asking(protocol="greedy", template="raw")
    prompts = (Prompts(formulation="equations", hops=2),)
    model = f"{url}#fake"
    return LlmBench(model=model, prompts=prompts, questions=40, asking=asking, seeds=(seed,))


def recipe(kind: str, url: str, seed: int = 0) -> Recipe:
    makers: dict[str, Callable[[], Recipe]] = {
        "transformer": lambda: transformer(seed),
        "learned": lambda: learned(seed),
        "fleet": lambda: fleet(seed),
        "ngram": lambda: ngram(seed),
        "bench": lambda: bench(url, seed),
    }
    return makers[kind]()


def make(recipe: Recipe, store: Store, stop: int | None = None) -> RunFolder:
    """The run of a recipe, whole, or stopped by a signal when it has come to `stop` units."""
    watcher = None if stop is None else Stopper(stop)
    try:
        train(recipe, store, watcher=watcher)
    except Interrupted:
        assert stop is not None
    return store.find(recipe.run_name())


class Stopper:
    """A watcher that asks the training to stop, as Ctrl-C does."""

    def __init__(self, at: int) -> None:
        self.at, self.asked = at, False

    def start(self, folder: RunFolder, step: int) -> None:
        """Called once."""

    def advance(self, step: int, latest: dict[str, np.ndarray]) -> None:  # noqa: ARG002
        if step >= self.at and not self.asked:
            self.asked = True
            signal.raise_signal(signal.SIGINT)

    def stop(self) -> None:
        """Called at the end."""


@contextmanager
def endpoint() -> Iterator[str]:
    """The URL of a server in a process of its own, which gives every question the same answer
    each time. Ask for it before torch has computed: the process is a fork of this one.
    """
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who asks
        server.serve_forever()
        os._exit(0)
    port = server.server_address[1]
    server.server_close()
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        letter = "abcdefgh"[zlib.crc32(body["prompt"].encode()) % 8]
        answer = json.dumps({"choices": [{"text": f" {letter}."}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


def raw(root: Path) -> dict[str, bytes]:
    """Every file below a folder, by name, but for locks."""
    paths = [path for path in sorted(root.rglob("*")) if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def files(root: Path) -> dict[str, bytes]:
    """The same, without the times in manifests."""
    return {
        name: timeless(data) if name.endswith("manifest.json") else data
        for name, data in raw(root).items()
    }


def timeless(manifest: bytes) -> bytes:
    """A manifest without the seconds that its training took, and without the hash of itself that
    depends on them; as it is if it cannot be read.
    """
    try:
        return json.dumps(
            {**json.loads(manifest), "seconds": 0, "check": ""}, sort_keys=True
        ).encode()
    except (ValueError, TypeError):
        return manifest
