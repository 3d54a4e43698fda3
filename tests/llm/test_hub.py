"""Models from a hub: a hub on this machine that says what it has, truthfully or not."""

import hashlib
import json
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlparse

import pytest

from hopscope.errors import ModelUnavailable
from hopscope.llm import models
from hopscope.llm.local import LocalModel

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """One repository, ours/tiny, with these files."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files, self.lie = files, False

    def sha(self, data: bytes) -> str:
        return "0" * 64 if self.lie else hashlib.sha256(data).hexdigest()

    def about(self) -> object:
        files = [
            {"rfilename": name, "size": len(data),
             "lfs": {"sha256": self.sha(data), "size": len(data), "pointerSize": 1}}
            for name, data in self.files.items()
        ]  # fmt: skip
        return {"id": "ours/tiny", "sha": COMMIT, "siblings": files}

    def tree(self) -> object:
        return [
            {"type": "file", "path": name, "size": len(data), "oid": COMMIT}
            for name, data in self.files.items()
        ]

    def answer(self, path: str) -> tuple[int, bytes]:
        if path.startswith("/api/models/ours/tiny"):
            return 200, json.dumps(self.tree() if "/tree/" in path else self.about()).encode()
        name = path.rsplit("/", 1)[-1]
        known = path.startswith(f"/ours/tiny/resolve/{COMMIT}/") and name in self.files
        return (200, self.files[name]) if known else (404, b"")


@pytest.fixture
def hub(tmp_path: Path, tiny: LocalModel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    tiny.model.save_pretrained(tmp_path / "mine")
    tiny.tokenizer.save_pretrained(tmp_path / "mine")
    files = {path.name: path.read_bytes() for path in (tmp_path / "mine").iterdir()}
    mine = Hub({**files, "pytorch_model.bin": b"pickle"})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, data = mine.answer(urlparse(self.path).path)
            self.send_response(status)
            self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    here = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(models.hub, "fetch", partial(models.hub.fetch, endpoint=here))
    monkeypatch.setenv("HOPSCOPE_CACHE", str(tmp_path / "cache"))
    yield mine
    server.shutdown()
    server.server_close()


def test_a_model_of_the_hub_is_fetched_once_and_loaded(hub: Hub, tiny: LocalModel) -> None:
    folder = models.pull("ours/tiny")
    assert "pytorch_model.bin" not in {path.name for path in folder.iterdir()}
    hub.files.clear()
    assert models.pull("ours/tiny") == folder
    model, tokenizer = models.load("ours/tiny")
    again = LocalModel(model, tokenizer, "ours/tiny", "raw", 4)
    prompts, answers = ["a = 1 a = ?"], [["0", "1"]]
    assert again.probabilities(prompts, answers)[0] == pytest.approx(
        tiny.probabilities(prompts, answers)[0], rel=1e-4
    )


def test_what_the_hub_did_not_promise_is_refused(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.lie = True
    with pytest.raises(ModelUnavailable, match="SHA-256 .*, the hub says 000000000000…"):
        models.pull("ours/tiny")
    hub.lie = False
    del hub.files["model.safetensors"]
    with pytest.raises(ModelUnavailable, match="ours/tiny has no safetensors"):
        models.pull("ours/tiny")
    with pytest.raises(ModelUnavailable, match="cannot fetch ours/other from the hub"):
        models.pull("ours/other")
    with pytest.raises(ModelUnavailable, match="`hopscope models pull ours/tiny`"):
        models.load("ours/tiny")
    nowhere = partial(models.hub.fetch, endpoint="http://127.0.0.1:1")
    monkeypatch.setattr(models.hub, "fetch", nowhere)
    with pytest.raises(ModelUnavailable, match="cannot fetch ours/tiny .*is there a network") as no:
        models.pull("ours/tiny")
    assert str(no.value).isprintable()
    assert list((tmp_path / "cache" / "models").iterdir()) == []
