"""`hopscope view`: models in the browser, or as a page."""

from functools import partial
from pathlib import Path
from typing import Any

import click
from packaging.requirements import Requirement

from hopscope.cli import flags
from hopscope.cli.options import command, gathered, option, refuse_unused
from hopscope.cli.output import flush, note, say
from hopscope.cli.subject import Subject
from hopscope.errors import ConfigError
from hopscope.extras import install, lack
from hopscope.web.address import HERE, PORT, decided
from hopscope.web.bundle import check_target, write_page
from hopscope.web.opening import show_page
from hopscope.web.questions import STUDY
from hopscope.web.views import Views

NEEDED = ("uvicorn>=0.54",)
"""Packages of the extra `web`."""
SERVER = ("--host", "--port", "--socket", "--trusted-origin", "--read-only", "--no-browser")


@command(
    gathered(
        "subject", Subject,
        click.argument("name", default="", metavar="[RUN]", shell_complete=flags.RUNS),
        option("--task FILE", "Task of a model from elsewhere: a JSON file, or repeated-tokens.",
               type=str),
        option("--circuit-file FILE", "Circuit of a model from elsewhere, as `hopscope circuit "
               "--save` wrote it."),
        flags.store,
    ),
    option("--save FILE.html|FOLDER", "Start no server: write the model as one page, or as a "
           "folder of files, that open from a disk or on any web server."),
    option("--no-browser", "Only print the URL."),
    option("--host ADDRESS", "Address to listen at. At another than this machine's own, everyone "
           "who reaches it and has the URL may look; the connection is not encrypted.",
           default=HERE),
    option("--port N", f"Port to listen at (default: {PORT}, or the next one that is free)."),
    option("--socket FILE", "Listen at this Unix socket, which only you can open, instead of at a "
           "port."),
    option("--trusted-origin URL", "Another URL (without a path) that browsers may use, as behind "
           "a proxy; needed with --host 0.0.0.0.", multiple=True, name="trusted"),
    option("--read-only", "Keep nothing beside runs: no views."),
)  # fmt: skip
def view(
    subject: Subject, save: Path | None, no_browser: bool, read_only: bool, **server: Any
) -> None:
    """Open a run in the browser, or without RUN all runs of the store, until Ctrl-C.

    RUN may be a model from elsewhere with its --task: hf:FOLDER, nanogpt:FILE. Access needs the
    printed URL. Each URL opens one tab; then the URL for the next tab is printed.
    """
    if save is not None:
        refuse_unused("with --save, which starts no server", *SERVER)
        _save(subject, save)
        return
    _check_installed()
    where = decided(**server)

    def tell(line: str) -> None:
        say(line)
        flush()

    views, id_ = _views(subject, read_only=read_only)
    state = f"/run/{id_}" if id_ else ""
    show_page(views, state, where, browser=not no_browser, say=tell, note=note)


def _views(subject: Subject, *, read_only: bool) -> tuple[Views, str]:
    """Return the views that the page requests, and the id of the run to open (empty: all runs)."""
    if subject.elsewhere:
        from hopscope.web.studied import Studied

        study, named = subject.study(), [subject.name, "--task", str(subject.task)]
        circuit = study.circuit if subject.circuit_file else None
        made = partial(Studied, study, circuit, named=named, words=subject.words())
        return Views(subject.store, read_only, study=made), STUDY
    for flag, value in (("--task", subject.task), ("--circuit-file", subject.circuit_file)):
        if value is not None:
            raise ConfigError(f"{flag} is for a model from elsewhere (hf:FOLDER, nanogpt:FILE)")
    flags.check_no_model(subject.name)
    views = Views(subject.store, read_only)
    return views, views.id_of(subject.name) if subject.name else ""


def _save(subject: Subject, path: Path) -> None:
    """Write the page to a file or folder; this does not need the extra `web`."""
    check_target(path)
    if not subject.name:
        raise ConfigError("--save writes the page of one run: name it, such as gallery/demo")
    views, id_ = _views(subject, read_only=True)
    say(f"page: {write_page(views, id_, path)}")


def _check_installed() -> None:
    """Raise ConfigError with an install command if the server's packages are missing."""
    needs = [Requirement(need) for need in NEEDED]
    if lacks := [*filter(None, map(lack, needs))]:
        raise ConfigError(f"the explorer cannot start ({', '.join(lacks)}): {install(needs)}")
