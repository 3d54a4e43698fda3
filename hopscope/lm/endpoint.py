"""A model behind an OpenAI-compatible server: vLLM, llama.cpp, Ollama, or a hosted one.

The openai client sends requests and retries. This module adds safety: the key comes from one
environment variable, is never shown, and is sent unencrypted only to this machine; each error is
one line that says what to do.
"""

import os
import re
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from hopscope.errors import ConfigError, EndpointFailed
from hopscope.extras import install_extra
from hopscope.lm.prompts import Question, raw_text

KEY = "HOPSCOPE_API_KEY"
"""The environment variable with the key, its only source."""
RETRIES = 4
TIMEOUT = 60.0
"""Seconds to wait for an answer."""
PLAIN_URL = re.compile(r"https?://[\w.:\[\]-]+(/[\w.~%/-]*)?", re.ASCII)
"""URLs that all parsers read in the same way: no user, no query, no escapes in the host."""


class Endpoint:
    """A model that answers questions over HTTP; it gives no probabilities."""

    def __init__(
        self,
        url: str,
        name: str,
        *,
        chat: bool = True,
        max_tokens: int = 16,
        http_client: Any = None,
    ) -> None:
        local = _check_url(url)
        self.url, self.name, self.chat, self.max_tokens = url, name, chat, max_tokens
        self._key = _read_key()
        try:
            import openai
        except ImportError as error:
            install = install_extra("lm", ["openai"])
            raise ConfigError(f"an endpoint needs openai: {install}") from error
        if "OPENAI_CUSTOM_HEADERS" in os.environ:
            raise ConfigError(f"$OPENAI_CUSTOM_HEADERS would be sent to {url}: unset it")
        if http_client is None:  # requests to this machine use no proxy
            http_client = openai.DefaultHttpxClient(trust_env=not local, follow_redirects=False)
        self._client = openai.OpenAI(
            api_key=self._key or "none",
            base_url=url,
            timeout=TIMEOUT,
            max_retries=RETRIES,
            http_client=http_client,
        )
        # The client read these from the environment; they are meant for OpenAI's server.
        self._client.organization = self._client.project = self._client.admin_api_key = None

    def answer(self, question: Question, temperature: float, seed: int) -> str:
        """Return the answer to a question; raises EndpointFailed for any error of the server."""
        import openai

        asked: dict[str, Any] = {"model": self.name, "temperature": temperature, "seed": seed}
        asked["max_tokens"] = self.max_tokens
        if self.chat:
            asked["messages"] = [{"role": "user", "content": question.prompt}]
        else:
            asked["prompt"] = raw_text(question.prompt, question.opening)
        path = "/chat/completions" if self.chat else "/completions"
        try:
            answer: Any = self._client.post(path, body=asked, cast_to=object)
            choice = answer["choices"][0]
            text = choice["message"]["content"] if self.chat else choice["text"]
        except openai.APIError as error:  # without the cause, which may contain the key
            raise EndpointFailed(self._advice(error)) from None
        except (LookupError, TypeError, ValueError):
            text = None
        if not isinstance(text, str):
            raise EndpointFailed(
                f"{self.url} sent no text of an OpenAI-compatible server: correct the URL; a model "
                "that thinks first needs more --max-tokens"
            )
        return text.encode("utf-8", "replace").decode()  # JSON may hold lone surrogates

    def _advice(self, error: Any) -> str:
        """Return the error as one line that says what to do."""
        import openai

        if isinstance(error, openai.APITimeoutError):
            return f"{self.url} did not answer for {TIMEOUT:g} s: check whether the server is busy"
        if not isinstance(error, openai.APIStatusError):
            cause = self._quote(str(error.__cause__ or error))
            return f"{self.url} cannot be reached ({cause}): start the server, or correct the URL"
        status = error.status_code
        got = f"{self.url} answered {status} ({self._quote(error.response.text)})"
        if status in (401, 403):
            refused = "the key was refused" if self._key else "no key was given"
            return f"{self.url} answered {status}: {refused}; set ${KEY} to a valid key"
        if status == 404:
            return f"{got}: correct the URL, or the model {self.name!r}"
        if status == 429 or status >= 500:
            return f"{got}, {RETRIES + 1} times: ask later; `hopscope resume` goes on"
        return f"{got}: correct the URL or the request"

    def _quote(self, text: str) -> str:
        """Return the server's text on one line, without the key."""
        if self._key:  # JSON may have backslashes in the key
            text = re.sub(r"\\*".join(map(re.escape, self._key)), "***", text)
        return "".join(each if each.isprintable() else "?" for each in " ".join(text.split()))[:150]


def _check_url(url: str) -> bool:
    """Return whether the server is this machine; raises for a URL that could expose the key."""
    if set("@?#") & set(url):  # the URL is not shown: it may hold a password
        raise ConfigError("the URL holds one of @ ? #: give it without user, key or query")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host = ""
    if not PLAIN_URL.fullmatch(url) or not host:
        raise ConfigError(f"the URL is {url!r}: give one such as http://127.0.0.1:8080/v1")
    try:
        local = host == "localhost" or ip_address(host).is_loopback
    except ValueError:  # a name
        local = False
    if url.rstrip("/").endswith("/completions"):
        raise ConfigError(f"the URL is {url!r}: give it up to and with /v1, no further")
    if parts.scheme == "http" and not local:
        raise ConfigError(f"the URL is {url!r}: a host other than this machine needs https")
    return local


def _read_key() -> str:
    """The key, or '' if there is none."""
    key = os.environ.get(KEY, "").strip()
    if not re.fullmatch(r"[!-~]*", key):
        raise ConfigError(f"${KEY} holds spaces or other characters that no key has: correct it")
    return key
