"""The token that every request must have: new at every start, or read from a file.

The printed URL holds a word instead, which the page exchanges for the token, once. Browsers keep
URLs in their history; a used word there is worthless.
"""

import hmac
import os
import re
import secrets
import stat
import time
from collections.abc import Callable
from pathlib import Path

from hopscope.errors import ConfigError
from hopscope.web.policy import WITHOUT_KEY, Refused

VARIABLE = "HOPSCOPE_TOKEN_FILE"
FORM = re.compile(r"[\w-]{32,200}", re.ASCII)
FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
LASTS = 600.0
"""Seconds for which a word is valid."""


class Once:
    """A word that can be exchanged for the token once; then `tell` is called with a new word."""

    def __init__(
        self,
        token: str,
        tell: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._token, self._tell, self._clock = token, tell, clock
        self.word, self._made = secrets.token_urlsafe(32), clock()

    def exchanged(self, word: object) -> str:
        """Return the token for the right word; raises Refused if it is wrong or too late.

        A late word is replaced too.
        """
        if not hmac.compare_digest(str(word).encode(), self.word.encode()):
            raise Refused(401, WITHOUT_KEY)
        late = self._clock() - self._made > LASTS
        self.word, self._made = secrets.token_urlsafe(32), self._clock()
        self._tell(self.word)
        if late:
            raise Refused(401, WITHOUT_KEY)
        return self._token


def token() -> str:
    """Return a new token, or the one in the file $HOPSCOPE_TOKEN_FILE."""
    place = os.environ.get(VARIABLE)
    return secrets.token_urlsafe(32) if not place else _kept(Path(place))


def _kept(path: Path) -> str:
    """Return the token in a file that only its owner can read; make the file if there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | FLAGS)
    except FileNotFoundError:
        return _made(path)
    except OSError as error:
        raise ConfigError(f"${VARIABLE} {path} cannot be read: {error.strerror}") from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(f"${VARIABLE} {path} is not a regular file")
        if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise ConfigError(f"${VARIABLE} {path} can be read by others: chmod 600 {path}")
        text = os.read(descriptor, 1_000).decode("latin-1").strip()
    finally:
        os.close(descriptor)
    if not FORM.fullmatch(text):
        raise ConfigError(
            f"${VARIABLE} {path} holds no token: expected 32 to 200 letters, digits, - and _; "
            "remove it, and one is made"
        )
    return text


def _made(path: Path) -> str:
    made = secrets.token_urlsafe(32)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | FLAGS, 0o600)
    except OSError as error:
        raise ConfigError(f"${VARIABLE} {path} cannot be made: {error.strerror}") from error
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{made}\n")
    return made
