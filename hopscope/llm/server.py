"""Where a server is and how it is reached: its address, its key, our limits, the connections.

An address that could send the key in clear over a network is refused here, before anything is
sent, and by a grammar of our own: what it lets through has one reading only.
"""

import math
import os
import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

from hopscope.errors import ConfigError

if TYPE_CHECKING:
    import httpx

_URL = re.compile(
    r"(?P<scheme>https?)://"
    r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[\w-]{1,63}(?:\.[\w-]{1,63})*))"
    r"(?::(?P<port>\d{1,5}))?(?:/[\w.~%/-]*)?",
    re.ASCII,
)


@dataclass(frozen=True)
class EndpointSettings:
    """Where the server is, and how it is asked."""

    url: str
    """Base URL up to and with /v1, such as http://127.0.0.1:8080/v1."""
    model: str
    """The model's name as the server knows it."""
    key_variable: str = "HOPSCOPE_API_KEY"
    """The environment variable that holds the key; keys come from nowhere else."""
    chat: bool = True
    """Ask /chat/completions with one user message, or /completions with the raw prompt."""
    max_tokens: int = 16
    concurrency: int = 8
    """Questions under way at once."""
    attempts: int = 5
    """Tries for each question."""
    timeout: float = 60.0
    """Seconds without a sign of life from the server."""
    requests_per_second: float | None = None
    """The most that we send, tries included; None is no limit."""

    def __post_init__(self) -> None:
        _check_url(self.url)
        if not self.model:
            raise ConfigError("the model is '': give the name under which the server knows it")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.key_variable):
            raise ConfigError(  # who gives the key itself must not read it in a log
                "key_variable is no name of an environment variable: give the name, not the key"
            )
        for knob in ("max_tokens", "concurrency", "attempts"):
            if getattr(self, knob) < 1:
                raise ConfigError(f"{knob} is {getattr(self, knob)}: give 1 or more")
        for knob in ("timeout", "requests_per_second"):
            value = getattr(self, knob)
            if value is not None and not 0 < value < math.inf:
                raise ConfigError(f"{knob} is {value}: give a finite number above 0")


def is_loopback(url: str) -> bool:
    """Whether the server is this machine: localhost, 127.0.0.0/8 or ::1."""
    found = _URL.fullmatch(url)
    host = (found["address"] or found["name"]).lower() if found else ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:  # a name
        return False


def _check_url(url: str) -> None:
    if set("@?#") & set(url):  # not repeated: it may hold a password
        raise ConfigError("the URL holds one of @ ? #: give it without user, key or query")
    found = _URL.fullmatch(url)
    if not found or not _in_bounds(found):
        raise ConfigError(f"the URL is {url!r}: give one such as http://127.0.0.1:8080/v1")
    if url.rstrip("/").endswith("/completions"):
        raise ConfigError(f"the URL is {url!r}: give it up to and with /v1, no further")
    if found["scheme"] == "http" and not is_loopback(url):
        raise ConfigError(f"the URL is {url!r}: a host other than this machine needs https")


def _in_bounds(found: re.Match[str]) -> bool:
    """Whether port and address, which the grammar knows only roughly, are within their bounds."""
    try:
        ip_address(found["address"] or "::1")
    except ValueError:
        return False
    return 0 < int(found["port"] or 1) < 65536


def read_key(variable: str) -> str:
    """The key, or '' where there is none."""
    key = os.environ.get(variable, "").strip()
    if not re.fullmatch(r"[!-~]*", key):  # HTTP would refuse it, and quote it in doing so
        raise ConfigError(
            f"the environment variable {variable} holds spaces or other characters that no key "
            "has: set it to the key alone"
        )
    return key


def open_client(
    settings: EndpointSettings, key: str, transport: "httpx.BaseTransport | None"
) -> "httpx.Client":
    """Without the environment's proxies on this machine, where a proxy has no business."""
    try:
        import httpx
    except ImportError as error:
        raise ConfigError("an endpoint needs httpx: pip install hopscope[llm]") from error
    try:
        return httpx.Client(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            transport=transport,
            timeout=httpx.Timeout(settings.timeout, pool=None),  # to queue for a socket is no fault
            limits=httpx.Limits(max_connections=settings.concurrency),
            trust_env=not is_loopback(settings.url),
            follow_redirects=False,
        )
    except (ImportError, OSError, ValueError, httpx.InvalidURL):
        raise ConfigError(  # the cause is left out: a proxy's URL may hold a password
            "the environment's proxy or certificates cannot be used: correct or unset HTTPS_PROXY, "
            "ALL_PROXY, SSL_CERT_FILE and SSL_CERT_DIR"
        ) from None
