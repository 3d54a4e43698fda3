"""The file of recipes of a sweep.

FILE.py has a list `recipes`, or a function `recipes()` that yields them; FILE.json holds one recipe
or a list. A FILE.py is executed with all rights of the user.
"""

import json
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice
from pathlib import Path
from types import ModuleType

from hopscope.configs import Recipe, read_recipe
from hopscope.configs.config import shortened
from hopscope.configs.kinds import kind_of
from hopscope.errors import ConfigError
from hopscope.store.files import read_bytes
from hopscope.workers.sweep import check_different

MODULE = "hopscope_sweep"
"""The module name of a FILE.py while it runs."""
NAME = "recipes"
"""The list or function in a FILE.py."""
MOST = 100_000
"""Largest number of recipes in one file (a function could yield without end)."""


def read_recipes(path: Path) -> tuple[Recipe, ...]:
    """Read the recipes of a file, in order; raises ConfigError for equal ones or none."""
    if path.suffix not in (".py", ".json"):
        raise ConfigError(f"{path} is not a file of recipes; expected FILE.py or FILE.json")
    found = _from_json(path) if path.suffix == ".json" else _from_python(path)
    if not found:
        raise ConfigError(f"{path} lists no recipe; expected at least one")
    with mistakes_in(f"{path}"):
        check_different(found)
    return tuple(found)


def _from_json(path: Path) -> list[Recipe]:
    text = read_bytes(path)
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        fields = None  # `read_recipe` reports the mistake
    if not isinstance(fields, list):
        with mistakes_in(f"{path}"):
            return [read_recipe(text)]
    found = []
    for number, each in enumerate(fields, 1):
        with mistakes_in(f"{path}, recipe {number}"):
            found.append(read_recipe(json.dumps(each)))
    return found


def _from_python(path: Path) -> list[Recipe]:
    read_bytes(path)  # raises for an unreadable file
    with _running(path):
        listed = getattr(_imported(path), NAME, None)
        listed = listed() if callable(listed) else listed
        if listed is None:
            raise ConfigError(
                f"{path} has no `{NAME}`; expected a list of recipes of that name, or a function "
                "that yields them"
            )
        if isinstance(listed, Recipe | str) or not isinstance(listed, Iterable):
            raise ConfigError(
                f"{path}: `{NAME}` is {shortened(repr(listed))}; expected a list of recipes"
            )
        found = list(islice(listed, MOST + 1))
    if len(found) > MOST:
        raise ConfigError(f"{path} yields more than {MOST:,} recipes; expected fewer in one file")
    for number, each in enumerate(found, 1):
        with mistakes_in(f"{path}, recipe {number}"):
            kind_of(each)
    return found


def _imported(path: Path) -> ModuleType:
    spec = spec_from_file_location(MODULE, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[MODULE] = module_from_spec(spec)  # dataclasses need it in sys.modules
    spec.loader.exec_module(module)
    return module


@contextmanager
def _running(path: Path) -> Iterator[None]:
    """Run a script within this block.

    Imports find files in its folder, prints go to stderr, and an error becomes a ConfigError with
    one line and its line number.
    """
    before, written = sys.path.copy(), sys.dont_write_bytecode
    sys.path.insert(0, str(path.parent.resolve()))
    sys.dont_write_bytecode = True
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (Exception, SystemExit) as error:
        if isinstance(error, ConfigError) and (line := _line(path, error)) is None:
            raise
        line, name = _line(path, error), type(error).__name__
        where = f"{path}, line {line}" if line else f"{path}"
        what = " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())
        text = what if isinstance(error, ConfigError) else f"{name}: {what}"
        raise ConfigError(f"{where}: {text}") from error
    finally:
        sys.path[:], sys.dont_write_bytecode = before, written
        sys.modules.pop(MODULE, None)


def _line(path: Path, error: BaseException) -> int | None:
    """The line of the file in which an error was raised, or None if it was elsewhere."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    return lines[-1] if lines else None


@contextmanager
def mistakes_in(what: str) -> Iterator[None]:
    """Prefix the text of a ConfigError raised within this block with `what`."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{what}: {error}") from error
