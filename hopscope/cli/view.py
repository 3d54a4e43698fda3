"""`hopscope view`: models in the browser, or as a page."""

import getpass
import os
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

import click
from packaging.requirements import Requirement

from hopscope.cli.health import lack
from hopscope.cli.options import RUNS, command, refuse_unused, store_option
from hopscope.cli.output import flush, note, say
from hopscope.errors import ConfigError
from hopscope.store import Store
from hopscope.store.files import check_folder
from hopscope.web.address import HERE, PORT, Address, decided, names_of

NEEDED = ("uvicorn>=0.54",)
"""What the extra `web` brings."""
SERVER = ("--host", "--port", "--socket", "--trusted-origin", "--read-only", "--no-browser")
FIRST = "gallery/demo"
"""The run that is saved where none is named."""
PAGE = """<!doctype html><html lang="en"><title>hopscope</title>
<meta http-equiv="refresh" content="0; url={url}"><a href="{url}">hopscope</a></html>
"""


@command
@click.argument("run", default="", metavar="[RUN]", shell_complete=RUNS)
@click.option(
    "--save",
    type=click.Path(path_type=Path),
    metavar="FILE.html|FOLDER",
    help="Start no server: write the model as one page, or as a folder of files, that "
    "open from a disk or on any web server.",
)
@click.option("--no-browser", is_flag=True, help="Only print the URL.")
@click.option(
    "--host",
    default=HERE,
    metavar="ADDRESS",
    help="Address to listen at. At another than this machine's own, everyone who reaches "
    "it and has the URL may look; the connection is not encrypted.",
)
@click.option(
    "--port",
    type=int,
    metavar="N",
    help=f"Port to listen at (default: {PORT}, or the next one that is free).",
)
@click.option(
    "--socket",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Listen at this Unix socket, which only you can open, instead of at a port.",
)
@click.option(
    "--trusted-origin",
    multiple=True,
    metavar="URL",
    help="Another URL (without a path) that browsers may use, as behind a proxy; "
    "needed with --host 0.0.0.0.",
)
@click.option("--read-only", is_flag=True, help="Keep nothing beside runs: no views.")
@store_option
def view(run: str, save: Path | None, no_browser: bool, store: Path | None, **server: Any) -> None:
    """Open a run in the browser, or without RUN all runs of the store, until Ctrl-C.

    Only a browser with the URL that is printed may look. It opens one tab; then the URL for the
    next one is printed.
    """
    if save is not None:
        refuse_unused("with --save, which starts no server", *SERVER)
        _save(run, save, store)
        return
    _serve(run, store, browser=not no_browser, **server)


def _serve(
    run: str, store: Path | None, *, browser: bool, host: str, port: int | None,
    socket: Path | None, trusted_origin: tuple[str, ...], read_only: bool,
) -> None:  # fmt: skip
    """Everything that can be refused is, before a port is open."""
    _check_installed()
    address, trusted = decided(host, port, socket, trusted_origin)
    from hopscope.web.app import Explorer
    from hopscope.web.page import page
    from hopscope.web.policy import Policy
    from hopscope.web.serving import listening, serve
    from hopscope.web.token import Once, token
    from hopscope.web.views import Views

    views, key = Views(Store(store), read_only), token()
    state = f"&/run/{views.id_of(run)}" if run else ""
    with listening(address) as (opened, found):
        root = f"{trusted[0]}/" if trusted else found.url
        once = Once(key, lambda word: note(f"for the next tab: {root}#once={word}{state}"))
        policy = Policy(key, names_of(found, trusted), frozenset(page()))
        explorer = Explorer(views, policy, note, read_only=read_only, once=once)
        url = f"{root}#once={once.word}{state}"
        say(url)
        if forward := forwarding(found, os.environ.get("SSH_CONNECTION", "")):
            say(f"from your own machine, first: {forward}")
        flush()
        with opened_in_browser(url, wanted=browser and has_browser(found)):
            serve(explorer, opened)


def _save(run: str, path: Path, store: Path | None) -> None:
    """Write the page; the extra of the server is not needed."""
    from hopscope.web.bundle import bundle, check_own, files_in, single
    from hopscope.web.views import Views

    one = path.suffix == ".html"
    if not one and path.suffix:
        raise ConfigError(f"--save is {path}; expected a name that ends in .html, or a folder")
    if one:
        check_own(path)
    else:
        check_folder(path)
        check_own(*files_in(path))
    views = Views(Store(store), read_only=True)
    id_ = views.id_of(run or FIRST)
    say(f"page: {single(views, id_, path) if one else bundle(views, id_, path)[-1]}")


def _check_installed() -> None:
    """The server is an extra: without it, one command installs it."""
    lacks = [text for need in NEEDED if (text := lack(Requirement(need)))]
    if lacks:
        raise ConfigError(
            f"the explorer cannot start ({', '.join(lacks)}): "
            f"python -m pip install {' '.join(f'{need!r}' for need in NEEDED)}"
        )


def forwarding(address: Address, connection: str) -> str:
    """The command by which a browser elsewhere reaches this server, if ssh leads here."""
    words = connection.split()
    if len(words) != 4:
        return ""
    port = f" -p {words[3]}" if words[3] != "22" else ""
    end = address.socket.absolute() if address.socket else f"{address.place.name}:{address.port}"
    return f"ssh -N{port} -L {address.port or PORT}:{end} {getpass.getuser()}@{words[2]}"


def has_browser(address: Address) -> bool:
    """Is somebody before this machine, and can a browser ask there?"""
    if address.socket is not None or os.environ.get("SSH_CONNECTION"):
        return False
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(screen) or not sys.platform.startswith("linux")


@contextmanager
def opened_in_browser(url: str, *, wanted: bool) -> Iterator[None]:
    """Opens a page by a file of one's own that leads there: other users see the arguments of
    programs, and the URL holds the token.
    """
    if not wanted:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="hopscope-") as folder:  # its owner's alone
        page = Path(folder, "open.html")
        page.touch(0o600)
        page.write_text(PAGE.format(url=escape(url)))
        webbrowser.open(page.as_uri())
        yield
