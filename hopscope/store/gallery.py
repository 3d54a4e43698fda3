"""The gallery: trained models that come with hopscope, each an ordinary run folder.

`gallery/NAME` names one of them in commands that only read a run. They are read-only; a copy is an
ordinary run. The about.json of each model names the run it was made from, and its loss before and
after its weights were rounded. `benchmarks/gallery.py` builds the models. A clone has all of them.
The package has the smallest three, and an index of the others; `hopscope pull` fetches those into
the cache.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hopscope import __version__
from hopscope.configs import Config
from hopscope.errors import ConfigError, RunMissing
from hopscope.machine import cache_root
from hopscope.store.folder import GALLERY, RunFolder
from hopscope.store.manifest import MANIFEST

ROOT = Path(__file__).parent.parent / "gallery"
INDEX = ROOT / "index.json"
ABOUT = "about.json"


class About(Config):
    """Description and origin of a model of the gallery."""

    what: str
    """What the model is, in a few words."""
    trained: bool
    """True if the weights were trained, False if they were written by hand."""
    run: str
    """The name of the run that the model was taken from."""
    step: int
    """The step of the checkpoint that the weights were taken from."""
    unit: str
    """The word for what `step` counts, in the singular."""
    hopscope: str
    """The version of hopscope that made the entry."""
    weights: str
    """How the weights are stored, and why."""
    exact_loss: float
    """The mean loss over hops on fresh examples, with the weights before they were rounded."""
    loss: float
    """The mean loss over hops on the same examples, with the weights as they are kept here."""

    @property
    def origin(self) -> str:
        """The model's origin, storage and loss as text."""
        trained = f"run {self.run} after {self.step:,} {self.unit}s"
        made = trained if self.trained else "written by hand, not trained"
        before, after = (
            f"{loss:.5f}" if loss > 1e-5 else f"{loss:.0e}" for loss in (self.exact_loss, self.loss)
        )
        loss = f"loss {after}" if before == after else f"loss {before} before, {after} after"
        return f"{made} (hopscope {self.hopscope}); weights {self.weights}: {loss}"


class Indexed(Config):
    """A model of the gallery that the package does not contain."""

    sha256: str
    """The SHA-256 of the model's manifest, which holds the SHA-256 of every other file."""
    size: int
    """The number of bytes of all its files."""
    what: str


def index() -> dict[str, Indexed]:
    """The models that the package does not contain, by name."""
    return {name: Indexed(**entry) for name, entry in json.loads(INDEX.read_bytes()).items()}


def cache() -> Path:
    """The folder of the models that were fetched for this version of hopscope."""
    return cache_root() / "gallery" / __version__


def roots() -> Iterator[Path]:
    """Yield the folders that hold models of the gallery."""
    yield ROOT
    with suppress(ConfigError):  # without a home folder there is no cache
        yield cache()


def names() -> list[str]:
    """The names of all models of the gallery that are on this machine, in alphabetical order."""
    return sorted({each.parent.name for root in roots() for each in root.glob(f"*/{MANIFEST}")})


def path(name: str) -> Path:
    """The folder of the model of this name."""
    return next((root / name for root in roots() if (root / name).exists()), ROOT / name)


def find(name: str) -> RunFolder:
    """Return the model of this name, with or without the prefix `gallery/`; raises RunMissing."""
    own = name.removeprefix(GALLERY)
    if own not in (there := names()):
        if own in (known := index()):
            raise RunMissing(
                f"{GALLERY}{own} does not come with the package: `hopscope pull {GALLERY}{own}` "
                f"fetches it ({known[own].size / 1e6:.1f} MB)"
            )
        listed = ", ".join(GALLERY + each for each in sorted({*there, *known})) or "none"
        raise RunMissing(f"no model {GALLERY + own!r} in the gallery. There are: {listed}")
    return RunFolder(path(own), gallery=True)


def about(folder: RunFolder) -> About | None:
    """The origin of a model of the gallery, or of a copy of one; None for other runs."""
    return About.from_json(folder.read(ABOUT)) if ABOUT in folder.manifest.files else None
