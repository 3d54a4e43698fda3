"""Fetches models of the gallery that are too large for the package.

The package knows the SHA-256 of the manifest of each, and the manifest knows that of every other
file. So it does not matter where they come from: a clone, a folder of downloaded files, or the
files of this version's release, at the repository that the package's metadata names.
"""

import io
import tempfile
import zipfile
from http.client import HTTPException
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from urllib.request import urlopen

from hopscope import __version__
from hopscope.errors import SharingError, StoreError
from hopscope.store import RunFolder, Store, gallery
from hopscope.store.files import read_inside, sha256
from hopscope.store.folder import GALLERY
from hopscope.store.manifest import MANIFEST, MOST_BYTES, NAME

REPOSITORY = "Repository"
"""The name of the repository's address in the package's metadata."""
PATIENCE = 30.0
"""Seconds that a server may be silent."""


def asset(own: str) -> str:
    """The name of the release's file of a model."""
    return f"gallery-{own}.zip"


def pull(name: str, source: str = "") -> RunFolder:
    """Fetch a model, unless it is here: from the release, or from an address or a folder."""
    own = name.removeprefix(GALLERY)
    known = gallery.index().get(own)
    if known is None or own in gallery.names():
        return gallery.find(name)
    with tempfile.TemporaryDirectory() as work:
        folder = _of_folder(own, Path(source), Path(work)) if Path(source or "-").is_dir() else None
        if folder is None:
            folder = _unpacked(_fetched(own, source or address(), known.size), Path(work))
        try:
            if sha256(read_inside(folder, MANIFEST, MOST_BYTES)) != known.sha256:
                raise SharingError(
                    f"{GALLERY}{own} from {source or address()} is not the one of hopscope "
                    f"{__version__}: take the one of that version"
                )
            found = RunFolder(folder)
            found.paths("", verify=True)
        except StoreError as error:
            raise SharingError(f"{GALLERY}{own} cannot be fetched: {error}") from error
        Store(gallery.cache()).copy(found, own)
    return gallery.find(name)


def address() -> str:
    """Where the files of this version's release are."""
    if url := repository():
        return f"{url}/releases/download/v{__version__}"
    raise SharingError("this package names no repository: --from names a clone to take it from")


def repository() -> str:
    """The address of the repository, or nothing."""
    try:
        named = metadata("hopscope").get_all("Project-URL") or []
    except PackageNotFoundError:
        named = []
    pairs = (each.partition(", ") for each in named)
    return next((url for label, _, url in pairs if label == REPOSITORY), "")


def _of_folder(own: str, source: Path, work: Path) -> Path:
    """The model in a clone, or in a folder of downloaded files."""
    clone, file = source / "hopscope" / "gallery" / own, source / asset(own)
    if clone.is_dir():
        return clone
    if file.is_file():
        return _unpacked(file.read_bytes(), work)
    raise SharingError(f"{source} has neither hopscope/gallery/{own}, as a clone, nor {file.name}")


def _fetched(own: str, place: str, size: int) -> bytes:
    """The file of a release."""
    url = f"{place.rstrip('/')}/{asset(own)}"
    if not url.startswith(("https://", "http://")):
        raise SharingError(f"{place} is neither a folder nor an address that begins with https://")
    try:
        with urlopen(url, timeout=PATIENCE) as answer:  # noqa: S310 - the scheme was checked
            return bytes(answer.read(2 * size))
    except (OSError, ValueError, HTTPException) as error:
        raise SharingError(
            f"cannot fetch {url} ({error}): --from FOLDER takes it from a clone"
        ) from error


def _unpacked(data: bytes, work: Path) -> Path:
    """The files of a run in a zip; whatever else is in it is left alone."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as opened:
            for each in opened.infolist():
                if each.filename == MANIFEST or NAME.fullmatch(each.filename):
                    target = work / each.filename
                    target.parent.mkdir(exist_ok=True)
                    target.write_bytes(opened.read(each))
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise SharingError(f"what was fetched is not a zip file of a model: {error}") from error
    return work
