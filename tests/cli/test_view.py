"""`hopscope view`: one line with the URL, and whatever is unsafe refused before."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import tomllib
import webbrowser
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from calling import Patch, Said, Say

from hopscope import extras
from hopscope.cli import view
from hopscope.configs import Experiment
from hopscope.training import train
from hopscope.web import carried, opening
from hopscope.web.address import Address

CALL = "from hopscope.cli.main import main; main()"
URL = re.compile(r"http://127\.0\.0\.1:(\d+)/#once=([\w-]{43})(&/run/[\w-]+)?")


@contextmanager
def started(root: Path, *words: str, **environment: str) -> Iterator[tuple[subprocess.Popen, str]]:
    """A server in a process of its own, and its first line. It is killed after ten minutes: what is
    waited for, a line or an answer, may never come.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", CALL, *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root,
        env=os.environ | environment,
    )  # fmt: skip
    watch = threading.Timer(600, process.kill)
    watch.start()
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().rstrip("\n")
    finally:
        watch.cancel()
        process.kill()
        process.communicate()


def test_the_line_that_is_printed_leads_to_the_run(root: Path) -> None:
    words = ("view", "gallery/demo", "--no-browser")
    with started(root, *words, SSH_CONNECTION="10.0.0.9 50000 10.0.0.1 2222") as (process, line):
        match = URL.fullmatch(line)
        assert match is not None, (line, process.stderr.read())
        port, word, run = match.groups()
        assert run == "&/run/gallery-demo"
        assert process.stdout.readline().startswith(
            f"from your own machine, first: ssh -N -p 2222 -L {port}:127.0.0.1:{port} "
        )
        api, body = f"http://127.0.0.1:{port}/api", json.dumps({"word": word}).encode()
        exchange = Request(f"{api}/token", body, {"Content-Type": "application/json"})
        with urlopen(exchange, timeout=60) as answer:
            token = json.loads(answer.read())["token"]
        with pytest.raises(HTTPError, match="401"):
            urlopen(exchange, timeout=60)
        url = f"{api}/runs/gallery-demo"
        asked = Request(url, headers={"Authorization": f"Bearer {token}"})
        with urlopen(asked, timeout=60) as answer:
            assert b'"gallery/demo"' in answer.read()
        with pytest.raises(HTTPError, match="401"):
            urlopen(url, timeout=60)
        arguments = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        assert word.encode() not in arguments
        assert token.encode() not in arguments
        sure = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        for _ in range(5):  # on a busy machine torch may take longer to load than an answer may
            busy = HTTPConnection("127.0.0.1", int(port))  # and does not wait for the answer
            busy.request("POST", "/api/runs/gallery-demo/costs", b'{"examples": 4096}', sure)
            if (answer := busy.getresponse()).status != 503:
                break
        with answer, closing(busy):
            assert answer.status == 200
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, "")
        again = URL.fullmatch(err.removeprefix("for the next tab: ").rstrip("\n"))
        assert again is not None, err
        assert (again[1], again[2] != word, again[3]) == (port, True, run)
    assert not (root / "runs").exists()  # to look makes nothing


def test_one_command_installs_the_extra(root: Path, hopscope: Say, monkeypatch: Patch) -> None:
    def version(name: str) -> str:
        if name == "uvicorn":
            raise PackageNotFoundError(name)
        return "2.0"

    monkeypatch.setattr(extras, "version", version)
    code, out, err = hopscope("view")
    assert (code, out) == (2, "")
    assert "(uvicorn is missing): python -m pip install 'uvicorn>=0.54'" in err
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert project["project"]["optional-dependencies"]["web"] == list(view.NEEDED)


def test_the_command_behind_ssh_is_for_sockets_and_other_addresses_too() -> None:
    me = opening.getpass.getuser()
    for address, connection, place in (
        (Address(socket=Path("/x/s")), "10.0.0.9 1 10.0.0.1 22", "8384:/x/s {}@10.0.0.1"),
        (Address("::1", 8385), "::2 1 fe80::1 22", "8385:[::1]:8385 {}@fe80::1"),
    ):
        assert opening.forwarding(address, connection) == f"ssh -N -L {place.format(me)}"
        assert opening.forwarding(address, "") == ""


def test_the_browser_is_led_by_a_file_of_ones_own(monkeypatch: Patch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(webbrowser, "open", seen.append)
    url = "http://127.0.0.1:8384/#once=abc&/run/x"
    with opening.opened_in_browser(url, wanted=True):
        (uri,) = seen
        page = Path(uri.removeprefix("file://"))
        assert page.stat().st_mode & 0o777 == 0o600
        assert page.parent.stat().st_mode & 0o777 == 0o700
        assert "url=http://127.0.0.1:8384/#once=abc&amp;/run/x" in page.read_text()
        assert "once" not in uri
    assert not page.exists()
    with opening.opened_in_browser(url, wanted=False):
        assert len(seen) == 1


def test_a_browser_is_opened_where_somebody_sits(monkeypatch: Patch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    assert not opening.has_browser(Address())
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        with monkeypatch.context() as there:
            there.setenv(name, ":0")
            assert opening.has_browser(Address())
            assert not opening.has_browser(Address(socket=Path("s")))
            there.setenv("SSH_CONNECTION", "a 1 b 22")
            assert not opening.has_browser(Address())


def test_a_run_becomes_files(root: Path, tiny: Experiment, said: Said, monkeypatch: Patch) -> None:
    monkeypatch.setattr(carried, "EXAMPLES", 2)
    monkeypatch.setattr(carried.engine_data, "__defaults__", (2,))
    name = train(tiny, root / "runs").name
    assert said("view", name, "--save", "site") == "page: site/index.html\n"
    assert said("view", name, "--save", "page.html") == "page: page.html\n"
    for page in ("site/index.html", "page.html"):
        assert "default-src 'none'" in (root / page).read_text()
    assert name in (root / "site" / "data.js").read_text()
