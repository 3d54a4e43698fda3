"""`hopscope view` and `hopscope serve`: models in the browser."""

import getpass
import os
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Annotated

import tyro
from packaging.requirements import Requirement

from hopscope.cli.arguments import StoreArguments, refuse_unused
from hopscope.cli.health import lack
from hopscope.cli.output import flush, note, say
from hopscope.errors import ConfigError
from hopscope.store import Store
from hopscope.store.files import check_folder
from hopscope.web.address import HERE, PORT, Address, decided, names_of

NEEDED = ("starlette>=1.10", "uvicorn>=0.54")
"""What the extra `web` brings."""
FIRST = "gallery/demo"
"""The run that is shown where none is named."""
PAGE = """<!doctype html><html lang="en"><title>hopscope</title>
<meta http-equiv="refresh" content="0; url={url}"><a href="{url}">hopscope</a></html>
"""


@dataclass(frozen=True)
class ServeArguments(StoreArguments):
    """Show the models of a store to browsers, until Ctrl-C; whoever opens the URL that is printed
    may look, and nobody else. It opens one tab; the next URL is printed then.
    """

    host: str = HERE
    """The address to listen at. With another than this machine's own, whoever reaches it and has
    the token may ask; the connection is not encrypted."""
    port: int | None = None
    """The port; unset: 8384, or the next one that is free."""
    socket: Path | None = None
    """Listen at this Unix socket, which only you can open, instead of at a port."""
    trusted_origin: tuple[str, ...] = ()
    """A URL without a path under which browsers may ask as well, as behind a proxy; with --host
    0.0.0.0 there has to be one."""
    read_only: bool = False
    """Keep nothing beside runs: no views."""


@dataclass(frozen=True)
class ViewArguments(ServeArguments):
    """Open a model in the browser: its attention, its circuit, its training; switch heads off."""

    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")] = ""
    """The run's name, or enough of it to be unique; unset: gallery/demo, beside all runs."""
    no_browser: bool = False
    """Only print the URL."""
    out: Path | None = None
    """Start no server: write the page into this folder, as files that open from a disk or on any
    web server, with weights of some checkpoints, so that heads can be switched off there, too."""
    single: Path | None = None
    """The same as one HTML file."""


def serve(chosen: ServeArguments) -> int:
    return _served(chosen, "", browser=False)


def view(chosen: ViewArguments) -> int:
    if chosen.out and chosen.out.suffix == ".html":
        raise ConfigError(f"--out is {chosen.out}; expected a folder: --single writes one file")
    if chosen.out or chosen.single:
        server = ("host", "port", "socket", "trusted_origin", "read_only", "no_browser")
        refuse_unused(chosen, server, "with --out and --single, which start no server")
        return _saved(chosen)
    return _served(chosen, chosen.run, browser=not chosen.no_browser)


def _served(chosen: ServeArguments, run: str, *, browser: bool) -> int:
    """Everything that can be refused is, before a port is open."""
    _check_installed()
    address, trusted = decided(chosen.host, chosen.port, chosen.socket, chosen.trusted_origin)
    from hopscope.web.listening import listening
    from hopscope.web.policy import Policy
    from hopscope.web.serving import explorer, public
    from hopscope.web.serving import serve as answer
    from hopscope.web.token import Once, token
    from hopscope.web.views import Views

    views, key = Views(Store(chosen.store), chosen.read_only), token()
    state = f"&/run/{views.id_of(run)}" if run else ""
    with listening(address) as (opened, found):
        root = f"{trusted[0]}/" if trusted else found.url
        once = Once(key, lambda word: note(f"for the next tab: {root}#once={word}{state}"))
        policy = Policy(key, names_of(found, trusted), public())
        app = explorer(views, policy, note, read_only=chosen.read_only, once=once)
        url = f"{root}#once={once.word}{state}"
        say(url)
        if forward := forwarding(found, os.environ.get("SSH_CONNECTION", "")):
            say(f"from your own machine, first: {forward}")
        flush()
        with opened_in_browser(url, wanted=browser and has_browser(found)):
            answer(app, opened)
    return 0


def _saved(chosen: ViewArguments) -> int:
    """The page as files; the extra of the server is not needed."""
    from hopscope.web.bundle import bundle, check_own, files_in, single
    from hopscope.web.views import Views

    if chosen.out:
        check_folder(chosen.out)
        check_own(*files_in(chosen.out))
    if chosen.single:
        check_own(chosen.single)
    views = Views(Store(chosen.store), read_only=True)
    id_ = views.id_of(chosen.run or FIRST)
    pages = []
    if chosen.out:
        pages.append(bundle(views, id_, chosen.out)[-1])
    if chosen.single:
        pages.append(single(views, id_, chosen.single))
    for page in pages:
        say(f"page: {page}")
    return 0


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
