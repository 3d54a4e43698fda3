"""All requests of the page to a store, as Python calls without HTTP.

torch is imported only when a model is opened.
"""

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hopscope.configs.kinds import KINDS, fetched
from hopscope.display import plain
from hopscope.errors import ConfigError, RunReadOnly
from hopscope.memory import Memory
from hopscope.store import Store, gallery
from hopscope.web.questions import STUDY
from hopscope.web.shelf import Shelf, without_folder
from hopscope.web.shown import Shown

if TYPE_CHECKING:
    from hopscope.web.studied import Studied

MEMORY = 2**30
"""Size of the cache for models and answers, in bytes."""
VIEWS = "views.json"
"""The file of a run with the views that users keep."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,59}", re.ASCII)
MOST_VIEWS, MOST_LETTERS = 100, 16_384


class Views:
    """The runs of a store and of the gallery, and a study, for the page."""

    def __init__(
        self,
        store: Store,
        read_only: bool = False,
        memory: int = MEMORY,
        study: "Callable[[Memory], Studied] | None" = None,
    ) -> None:
        self.store, self.read_only, self.memory = store, read_only, Memory(memory)
        self.study = None if study is None else study(self.memory)
        self.shelf = Shelf(store, [self.study.row] if self.study else [])

    def runs(self, since: str = "") -> dict[str, Any]:
        """Return the rows of all runs that changed since this cursor, and a new cursor."""
        found = self.shelf.since(since)
        told = {"problems": [self.told(line) for line in found.get("problems", ())]}
        return found | (told if "problems" in found else {})

    def id_of(self, name: str) -> str:
        """Return the id of a run, from its name or a unique part of it."""
        return self.shelf.id_of(self.store.find(name).name)

    def run(self, id_: str, seed: int | None = None) -> dict[str, Any]:
        """Return the description of a run; nothing is computed."""
        row = self.shelf.find(id_).row if self.study is None or id_ != STUDY else self.study.row
        shown = self.shown(id_, seed)
        at_hand = [name for name in shown.array_names if shown.at_hand(name) is not None]
        arrays = {"arrays": shown.array_names, "at_hand": at_hand}
        found: dict[str, Any] = plain(row | shown.description() | arrays)
        return found

    def views(self, id_: str) -> dict[str, Any]:
        """Return the views that users kept with the run, by name."""
        folder = None if self._is_study(id_) else self.shelf.folder(id_)
        if folder is None or VIEWS not in folder.manifest.files:
            return {}
        found: dict[str, Any] = json.loads(folder.read(VIEWS))
        return found

    def keep(self, id_: str, name: str, view: dict[str, Any] | None) -> None:
        """Keep a view (an address of the page) with the run, under a name; None removes it."""
        if self.read_only:
            raise RunReadOnly("this page is read-only: a view cannot be saved; copy its address")
        if NAME.fullmatch(name) is None:
            raise ConfigError(
                f"the view is called {name[:60]!r}; expected up to 60 letters, digits, spaces, "
                "dots and hyphens"
            )
        address = (view or {}).get("address")
        if view is not None and not (len(view) == 1 and isinstance(address, str)):
            raise ConfigError('a view is {"address": "#/run/…"}: nothing else can be saved')
        if len(str(address)) > MOST_LETTERS:
            raise ConfigError(f"the view takes more than {MOST_LETTERS:,} letters")
        if self._is_study(id_):
            raise ConfigError(
                "views are saved with runs, and a study is not a run: copy its address"
            )
        folder = self.shelf.folder(id_)
        with folder.locked():
            kept = json.loads(folder.read(VIEWS)) if VIEWS in folder.manifest.files else {}
            if view is None and kept.pop(name, None) is None:
                raise ConfigError(f"{folder.name} has no view {name!r}; it has {', '.join(kept)}")
            if view is not None:
                kept[name] = view
            if len(kept) > MOST_VIEWS:
                raise ConfigError(f"{folder.name} has {MOST_VIEWS} views already: remove one")
            folder.commit({VIEWS: json.dumps(kept, sort_keys=True).encode()})

    def told(self, error: Exception | str) -> str:
        """Return an error's text for the page: one line, without folders of this machine."""
        text = " ".join(str(error).split())
        for root in (self.store.root.absolute(), self.store.root, *gallery.roots()):
            text = without_folder(text, root)
        return text

    def _is_study(self, id_: str) -> bool:
        return self.study is not None and id_ == STUDY

    def shown(self, id_: str, seed: int | None = None) -> Shown:
        """Return the study, or the page's object for a run, by its kind."""
        if self.study is not None and self._is_study(id_):
            return self.study
        folder = self.shelf.folder(id_)
        kind = folder.recipe.kind
        if not KINDS[kind].page:
            known = ", ".join(name for name, each in KINDS.items() if each.page)
            raise ConfigError(f"a run of kind {kind} cannot be shown; expected {known}")
        found: Shown = fetched(KINDS[kind].page)(folder, self.memory, seed)
        return found
