"""Everything that the page can ask of a store, as Python; no HTTP, and no torch until a model is
opened.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from hopscope.configs.kinds import fetched
from hopscope.errors import ConfigError, RunReadOnly
from hopscope.store import RunFolder, Store, gallery
from hopscope.web.described import about_of
from hopscope.web.memory import Memory
from hopscope.web.questions import AblateQuestion, CostsQuestion, ExampleQuestion
from hopscope.web.shelf import Shelf
from hopscope.web.tensors import plain

MEMORY = 2**30
"""Bytes of models, and of what they were asked, that are kept open."""
KINDS = {
    "facts": "hopscope.web.trained:Trained",
    "ngram": "hopscope.web.ngram:Ngram",
    "llm": "hopscope.web.bench:Bench",
    "llm-mechanism": "hopscope.web.mechanism:Traced",
}
"""What a run of each kind is seen through."""
VIEWS = "views.json"
"""Where views that somebody keeps stand, beside the run."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,59}", re.ASCII)
MOST_VIEWS, MOST_LETTERS = 100, 16_384

Stop = Callable[[], bool]


def _never() -> bool:
    return False


class Views:
    """A store (and the gallery) as the page asks for it."""

    def __init__(self, store: Store, read_only: bool = False, memory: int = MEMORY) -> None:
        self.store, self.read_only = store, read_only
        self.shelf, self.memory = Shelf(store), Memory(memory)

    def runs(self, since: str = "") -> dict[str, Any]:
        """The rows of all runs that changed since this cursor, and a new cursor."""
        found = self.shelf.since(since)
        return {**found, "problems": [self.told(problem) for problem in found["problems"]]}

    def id_of(self, name: str) -> str:
        """The id of a run, by its name or enough of it to be unique."""
        return self.shelf.id_of(self.store.find(name).name)

    def run(self, id: str, seed: int | None = None) -> dict[str, Any]:  # noqa: A002
        """What is known of a run without computing."""
        entry, folder = self.shelf.find(id), self.shelf.folder(id)
        about = gallery.about(folder)
        found = {
            **entry.row,
            "about": about_of(about),
            "recipe": folder.recipe.model_dump(mode="json"),
            **self._opened(folder, seed).description(),
        }
        shown: dict[str, Any] = plain(found)
        return shown

    def at_hand(self, id: str, name: str, seed: int | None = None) -> bytes | None:  # noqa: A002
        """The same arrays, if nothing has to be computed for them."""
        found: bytes | None = self._able(id, "at_hand", seed)(name)
        return found

    def arrays(
        self, id: str, name: str, seed: int | None = None, stop: Stop = _never  # noqa: A002
    ) -> bytes:  # fmt: skip
        """Arrays of a run, by name, as a file of safetensors."""
        found: bytes = self._able(id, "arrays", seed)(name, stop)
        return found

    def example(self, id: str, asked: ExampleQuestion) -> bytes:  # noqa: A002
        """One example: tokens, answers and attention."""
        found: bytes = self._able(id, "example", asked.seed)(asked)
        return found

    def ablate(self, id: str, asked: AblateQuestion, stop: Stop) -> dict[str, Any]:  # noqa: A002
        """Losses as the model is, and with changes."""
        found: dict[str, Any] = plain(self._able(id, "ablate", asked.seed)(asked, stop))
        return found

    def over_time(
        self, id: str, asked: AblateQuestion, stop: Stop  # noqa: A002
    ) -> Iterator[dict[str, Any]]:  # fmt: skip
        """The same at every checkpoint, one after the other."""
        yield from map(plain, self._able(id, "over_time", asked.seed)(asked, stop))

    def costs(
        self, id: str, asked: CostsQuestion, stop: Stop  # noqa: A002
    ) -> Iterator[dict[str, Any]]:  # fmt: skip
        """Losses with every head and every path changed in turn."""
        yield from map(plain, self._able(id, "costs", asked.seed)(asked, stop))

    def views(self, id: str) -> dict[str, Any]:  # noqa: A002
        """The views that somebody kept beside the run, by name."""
        folder = self.shelf.folder(id)
        if VIEWS not in folder.manifest.files:
            return {}
        found: dict[str, Any] = json.loads(folder.read(VIEWS))
        return found

    def keep(self, id: str, name: str, view: dict[str, Any]) -> None:  # noqa: A002
        """Keep a view beside the run, under a name."""
        if self.read_only:
            raise RunReadOnly("this page is read-only: a view cannot be kept; copy its address")
        if NAME.fullmatch(name) is None:
            raise ConfigError(
                f"the view is called {name[:60]!r}; expected up to 60 letters, digits, spaces, "
                "dots and hyphens"
            )
        if len(json.dumps(view)) > MOST_LETTERS:
            raise ConfigError(f"the view takes more than {MOST_LETTERS:,} letters")
        folder = self.shelf.folder(id)
        with folder.locked():
            kept = json.loads(folder.read(VIEWS)) if VIEWS in folder.manifest.files else {}
            kept[name] = view
            if len(kept) > MOST_VIEWS:
                raise ConfigError(f"{folder.name} has {MOST_VIEWS} views already: rename one")
            folder.commit({VIEWS: json.dumps(kept, sort_keys=True).encode()})

    def told(self, error: Exception | str) -> str:
        """An error's text for the page: one line, and no folder of this machine."""
        text = " ".join(str(error).split())
        for root in (self.store.root.absolute(), self.store.root, gallery.ROOT):
            text = text.replace(f"{root}{os.sep}", "")
        return text

    def _opened(self, folder: RunFolder, seed: int | None) -> Any:
        """A run as what its kind is seen through."""
        kind = folder.recipe.kind
        if kind not in KINDS:
            raise ConfigError(f"a run of kind {kind} cannot be shown; expected {', '.join(KINDS)}")
        return fetched(KINDS[kind])(folder, self.memory, seed)

    def _able(self, id_: str, what: str, seed: int | None) -> Callable[..., Any]:
        """What answers a question, if the run's kind has it."""
        folder = self.shelf.folder(id_)
        found = getattr(self._opened(folder, seed), what, None)
        if found is None:
            raise ConfigError(
                f"{folder.name} is a run of kind {folder.recipe.kind}, which has no "
                f"{what.replace('_', ' ')}"
            )
        answer: Callable[..., Any] = found
        return answer
