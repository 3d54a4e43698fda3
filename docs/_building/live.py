"""Live pages: models of the gallery as the explorer saves them, built with the site and framed in
it. One that is there is kept: remove docs/_build to build them again.
"""

from pathlib import Path
from typing import Any

MODELS = ("demo", "planted")
FOLDER = "live-pages"


def build(app: Any) -> None:
    if app.builder.format != "html":
        return
    from hopscope.store import Store
    from hopscope.web.bundle import write_page
    from hopscope.web.views import Views

    folder = Path(app.outdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    views = Views(Store(folder / "none"), read_only=True)
    for name in MODELS:
        page = folder / f"{name}.html"
        if not page.exists():
            write_page(views, views.id_of(f"gallery/{name}"), page)


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", build)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
