"""A chat/completions server as a backend: vLLM, llama.cpp, Ollama, or a hosted model.

Every question is one POST, asked by one of a few threads. What may pass by itself (429, 5xx, no
connection, a timeout) is tried again after a pause that doubles; what will not pass is an
EndpointFailed at once. The first failure stops new questions, yet answers under way are still
handed out: they were paid for. The key is read from one environment variable, travels in one
header, and is struck out of everything that a server says before we repeat it.
"""

import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hopscope.errors import ConfigError, EndpointFailed
from hopscope.llm.backend import begun, raw_text
from hopscope.llm.patience import Throttle, pause, retry_after
from hopscope.llm.server import EndpointSettings, open_client, read_key

if TYPE_CHECKING:
    import httpx

__all__ = ["Endpoint", "EndpointSettings"]

Body = dict[str, Any]


class Endpoint:
    """A `Backend` that lives behind HTTP. Close it, or use it as a context."""

    def __init__(
        self,
        settings: EndpointSettings,
        transport: "httpx.BaseTransport | None" = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.settings = settings
        self.name = settings.model
        self._target = settings.url.rstrip("/") + ("/chat" if settings.chat else "")
        self._target += "/completions"
        self._sleep = sleep
        self._throttle = Throttle(settings.requests_per_second, sleep)
        self._key = read_key(settings.key_variable)
        self._client = open_client(settings, self._key, transport)

    def __enter__(self) -> "Endpoint":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the endpoint."""
        self._client.close()

    def complete(
        self,
        prompts: Sequence[str],
        temperature: float,
        seeds: Sequence[int],
        openings: Sequence[str] = (),
    ) -> list[str]:
        """One answer to each prompt, in their order; all of them, or EndpointFailed."""
        if any(openings) and self.settings.chat:
            raise ConfigError(
                "a chat endpoint begins its answers itself: ask without openings, or raw"
            )
        if not self.settings.chat:
            prompts = [
                raw_text(*each) for each in zip(prompts, begun(prompts, openings), strict=True)
            ]
        answers = dict(self.complete_each(prompts, temperature, seeds))
        return [answers[index] for index in range(len(prompts))]

    def complete_each(
        self, prompts: Sequence[str], temperature: float, seeds: Sequence[int]
    ) -> Iterator[tuple[int, str]]:
        """Index and answer of each prompt, as they arrive. After a failure no question is begun;
        those under way are yielded if they succeed, and then the first failure is raised.
        """
        if len(prompts) != len(seeds):
            raise ConfigError(f"{len(prompts)} prompts with {len(seeds)} seeds: give one for each")
        if not 0 <= temperature < math.inf:
            raise ConfigError(f"the temperature is {temperature}: give a finite number from 0 up")
        return self._answers(
            [self._body(*each, temperature) for each in zip(prompts, seeds, strict=True)]
        )

    def _body(self, prompt: str, seed: int, temperature: float) -> Body:
        question: Body = {"prompt": prompt}
        if self.settings.chat:
            question = {"messages": [{"role": "user", "content": prompt}]}
        return {
            "model": self.settings.model,
            **question,
            "temperature": float(temperature),
            "max_tokens": self.settings.max_tokens,
            "seed": int(seed),
        }

    def _answers(self, bodies: Sequence[Body]) -> Iterator[tuple[int, str]]:
        stop = Event()
        failures: list[EndpointFailed] = []  # in the order of time, which futures do not keep

        def ask(body: Body) -> str | None:
            if stop.is_set():
                return None
            try:
                return self._ask(body, stop)
            except EndpointFailed as failure:
                failures.append(failure)
                stop.set()
                return None

        with ThreadPoolExecutor(self.settings.concurrency) as pool:
            try:
                asked = {pool.submit(ask, body): index for index, body in enumerate(bodies)}
                for future in as_completed(asked):
                    if (answer := future.result()) is not None:
                        yield asked[future], answer
            finally:  # also when the caller walks away: the pool then waits for few questions only
                stop.set()
        if failures:
            raise failures[0]

    def _ask(self, body: Body, stop: Event) -> str:
        """The answer to one question, after as many tries as it may take."""
        attempt = 1
        while True:
            outcome = self._try(body)
            if isinstance(outcome, str):
                return outcome
            if attempt == self.settings.attempts or stop.is_set():
                tries = f"try {attempt} of {self.settings.attempts}"
                raise EndpointFailed(f"{outcome.what} ({tries}): {outcome.advice}")
            self._sleep(max(outcome.wait, pause(attempt)))
            attempt += 1

    def _try(self, body: Body) -> "str | _Trouble":
        """One request: the answer, or what stood in its way but may pass."""
        from httpx import RequestError, TimeoutException, TransportError

        self._throttle.wait()
        try:
            response = self._client.post(self._target, json=body)
        except TimeoutException:
            what = f"{self._target} was silent for {self.settings.timeout:g} s"
            return _Trouble(what, "see whether the server is busy, or raise the timeout")
        except TransportError as error:
            what = f"{self._target} cannot be reached: {self._quote(str(error), 200)}"
            return _Trouble(what, "start the server, or correct the URL")
        except RequestError as error:  # the bytes came, but could not be unpacked
            raise EndpointFailed(
                f"{self._target} sent an unreadable answer ({self._quote(str(error), 200)}): "
                "see whether it, or a proxy on the way, works"
            ) from error
        if response.status_code == 429 or response.status_code >= 500:
            return self._trouble(response)
        if not response.is_success:
            raise EndpointFailed(self._refusal(response))
        return self._answer(response)

    def _trouble(self, response: "httpx.Response") -> "_Trouble":
        what = f"{self._target} answered {response.status_code}{self._said(response)}"
        wait = retry_after(response.headers.get("Retry-After", ""))
        if response.status_code == 429:
            return _Trouble(what, "lower requests_per_second or concurrency, or ask later", wait)
        return _Trouble(what, "see the server's own log, or ask later", wait)

    def _refusal(self, response: "httpx.Response") -> str:
        """Why this question need not be asked again, and what to do about it."""
        status = response.status_code
        refused = f"{self._target} answered {status}"
        if status in {401, 403}:
            variable = self.settings.key_variable
            given = "the key was refused" if self._key else "no key was given"
            return f"{refused}: {given}; set the environment variable {variable} to a valid key"
        if status == 404:
            model = self.settings.model
            advice = f"the model {model!r} or the path is unknown; correct the model or the URL"
            return f"{refused}: {advice}{self._said(response)}"
        if 300 <= status < 400:
            where = self._quote(response.headers.get("Location", ""), 200) or "nowhere"
            return f"{refused}, a redirect to {where}: redirects are not followed; correct the URL"
        return f"{refused}{self._said(response)}: change what is asked, or the settings"

    def _answer(self, response: "httpx.Response") -> str:
        """The text of the first choice; an empty one is an answer too."""
        try:
            choice = response.json()["choices"][0]
            text = choice["message"]["content"] if self.settings.chat else choice["text"]
        except (ValueError, LookupError, TypeError, RecursionError):  # no JSON, or another shape
            text = None
        if isinstance(text, str):
            return text
        field = "message.content" if self.settings.chat else "text"
        raise EndpointFailed(
            f"{self._target} answered {self._quote(response.text, 100)!r}, which is no JSON with a "
            f"text at choices[0].{field}: see whether the URL is that of an OpenAI-compatible "
            "server; a model that thinks aloud first needs more max_tokens"
        )

    def _said(self, response: "httpx.Response") -> str:
        quote = self._quote(response.text, 200)
        return f" ({quote})" if quote else ""

    def _quote(self, text: str, limit: int) -> str:
        """On one line, without the key, which is struck out before the cut could halve it."""
        if self._key:  # backslashes are how JSON, and what wraps JSON, may spell it
            text = re.sub(r"\\*".join(map(re.escape, self._key)), "***", text)
        text = " ".join(text.split())[:limit]
        return "".join(letter if letter.isprintable() else "?" for letter in text)


@dataclass(frozen=True)
class _Trouble:
    """What went wrong but may pass, and the seconds that the server asked us to wait."""

    what: str
    advice: str
    wait: float = 0.0
