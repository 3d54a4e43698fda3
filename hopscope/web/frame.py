"""The explorer in a cell of a notebook: the saved page of a run, in a frame.

from hopscope.web.frame import Frame

Frame("gallery/demo")
"""

from pathlib import Path

from hopscope.store import Store
from hopscope.web.bundle import inline
from hopscope.web.carried import carried
from hopscope.web.views import Views


class Frame:
    """The interactive page of a run in a notebook, with all data inside and without a server."""

    def __init__(
        self, run: str, store: Store | Path | str | None = None, height: int = 800
    ) -> None:
        views = Views(store if isinstance(store, Store) else Store(store), read_only=True)
        self.run, self.height = run, height
        self._page = inline(carried(views, views.id_of(run)))

    def __repr__(self) -> str:
        return f"Frame({self.run!r}, height={self.height})"

    def _repr_html_(self) -> str:
        """Return the HTML for IPython."""
        # Quoted in single quotes, because the page has few of them to escape.
        page = self._page.replace("&", "&amp;").replace("'", "&#39;")
        return (
            f"<iframe title='the explorer' loading='lazy' width='100%' height='{self.height}' "
            f"style='border: 0' srcdoc='{page}'></iframe>"
        )
