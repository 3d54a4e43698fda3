"""Open the page: run a server until Ctrl-C, and open a browser if there is one."""

import getpass
import os
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopscope.display import in_notebook
from hopscope.errors import ConfigError
from hopscope.extras import install_extra
from hopscope.store import Store
from hopscope.web.address import HERE, PORT, Address, Origin, decided, names_of

if TYPE_CHECKING:
    from hopscope.circuits import Circuit
    from hopscope.study import Study
    from hopscope.web.views import Views

PAGE = """<!doctype html><html lang="en"><title>hopscope</title>
<meta http-equiv="refresh" content="0; url={url}"><a href="{url}">hopscope</a></html>
"""

Tell = Callable[[str], Any]
TOLD: Tell = partial(print, flush=True)


def show_page(
    views: "Views", state: str, where: tuple[Address, Sequence[Origin]], *,
    browser: bool = True, say: Tell = TOLD, note: Tell = TOLD,
) -> None:  # fmt: skip
    """Serve these views until Ctrl-C; the page opens in `state`. Errors are raised before a port is
    open.
    """
    try:
        from hopscope.web.serving import listening, serve
    except ImportError as error:
        raise ConfigError(f"the explorer cannot start ({error}): {install_extra('web')}") from error
    from hopscope.web.app import Explorer
    from hopscope.web.page import page_files
    from hopscope.web.policy import Policy
    from hopscope.web.token import Once, token

    (address, trusted), key, state = where, token(), f"&{state}" if state else ""
    with listening(address) as (opened, found):
        root = f"{trusted[0]}/" if trusted else found.url
        once = Once(key, lambda word: note(f"for the next tab: {root}#once={word}{state}"))
        policy = Policy(key, names_of(found, trusted), frozenset(page_files()))
        explorer = Explorer(views, policy, note, read_only=views.read_only, once=once)
        url = f"{root}#once={once.word}{state}"
        say(url)
        if forward := forwarding(found, os.environ.get("SSH_CONNECTION", "")):
            say(f"from your own machine, first: {forward}")
        with opened_in_browser(url, wanted=browser and has_browser(found)):
            serve(explorer, opened)


def view(
    study: "Study",
    circuit: "Circuit | None",
    words: Callable[[int], str],
    *,
    save: Path | str | None = None,
    browser: bool = True,
    port: int | None = None,
) -> None:
    """Open or save the page of a study: see `Study.view`."""
    from hopscope.study import RunStudy
    from hopscope.web.bundle import check_target, write_page
    from hopscope.web.questions import STUDY
    from hopscope.web.views import Views

    if save == "":
        raise ConfigError("save is empty; expected FILE.html, or a folder")
    if save is not None:
        check_target(Path(save))
    if isinstance(study, RunStudy) and circuit is None:
        folder = study.run.folder
        views = Views(Store(None if folder.gallery else folder.path.parent))
        id_, seed, step = views.id_of(folder.name), study.seed, study.step
        state = f"/run/{id_}?step={step}" + f"&seed={seed}" * (study.member is not None)
    else:
        from hopscope.web.studied import Studied

        views = Views(Store(None), study=partial(Studied, study, circuit, words=words))
        id_, seed, step, state = STUDY, None, None, f"/run/{STUDY}"
    if save is not None:
        write_page(views, id_, Path(save), seed, step)
        return
    if in_notebook():
        raise ConfigError(
            "a notebook cannot serve the page: use hopscope.web.frame.Frame(run) to show a run's "
            "page in a cell, or view(save='page.html') to write it"
        )
    show_page(views, state, decided(HERE, port, None, ()), browser=browser)


def forwarding(address: Address, connection: str) -> str:
    """Return the ssh command that forwards this server's port; empty outside an ssh session.

    `connection` is $SSH_CONNECTION.
    """
    words = connection.split()
    if len(words) != 4:
        return ""
    port = f" -p {words[3]}" if words[3] != "22" else ""
    end = address.socket.absolute() if address.socket else f"{address.name}:{address.port}"
    return f"ssh -N{port} -L {address.port or PORT}:{end} {getpass.getuser()}@{words[2]}"


def has_browser(address: Address) -> bool:
    """Return whether this machine can open a browser at the address (a display, no ssh, a port)."""
    if address.socket is not None or os.environ.get("SSH_CONNECTION"):
        return False
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(screen) or not sys.platform.startswith("linux")


@contextmanager
def opened_in_browser(url: str, *, wanted: bool) -> Iterator[None]:
    """Open a URL in the browser by a private file that redirects to it.

    Other users can see the arguments of programs, and the URL holds a secret.
    """
    if not wanted:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="hopscope-") as folder:  # only its owner can read it
        page = Path(folder, "open.html")
        page.touch(0o600)
        page.write_text(PAGE.format(url=escape(url)))
        webbrowser.open(page.as_uri())
        yield
