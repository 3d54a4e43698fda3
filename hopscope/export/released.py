"""Fetch models of the gallery that are too large for the package.

The package has the SHA-256 of each model's manifest, and the manifest has that of every other file.
So any source is safe: a clone, a folder of downloaded files, or this version's release at the
repository in the package's metadata.
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
from hopscope.store.manifest import FILE_NAME, MANIFEST, MANIFEST_BYTES

REPOSITORY = "Repository"
"""The label of the repository's URL in the package's metadata."""
PATIENCE = 30.0
"""Timeout of a server in seconds."""


def asset(own: str) -> str:
    """Return the name of a model's file in a release."""
    return f"gallery-{own}.zip"


def pull(name: str, source: str = "") -> RunFolder:
    """Fetch a model unless it is installed; `source` is a URL or folder (default: the release)."""
    own = name.removeprefix(GALLERY)
    known = gallery.index().get(own)
    if known is None or own in gallery.names():
        return gallery.find(name)
    with tempfile.TemporaryDirectory() as work:
        folder = _of_folder(own, Path(source), Path(work)) if Path(source or "-").is_dir() else None
        if folder is None:
            folder = _unpacked(_fetched(own, source or address(), known.size), Path(work))
        try:
            if sha256(read_inside(folder, MANIFEST, MANIFEST_BYTES)) != known.sha256:
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
    """Return the URL of this version's release files; raises SharingError if unknown."""
    if url := repository():
        return f"{url}/releases/download/v{__version__}"
    raise SharingError("this package names no repository: --from names a clone to take it from")


def repository() -> str:
    """Return the URL of the repository, or an empty text."""
    try:
        named = metadata("hopscope").get_all("Project-URL") or []
    except PackageNotFoundError:
        named = []
    pairs = (each.partition(", ") for each in named)
    return next((url for label, _, url in pairs if label == REPOSITORY), "")


def _of_folder(own: str, source: Path, work: Path) -> Path:
    """Return the folder of the model in a clone, or unpacked from a downloaded file."""
    clone, file = source / "hopscope" / "gallery" / own, source / asset(own)
    if clone.is_dir():
        return clone
    if file.is_file():
        return _unpacked(file.read_bytes(), work)
    raise SharingError(f"{source} has neither hopscope/gallery/{own}, as a clone, nor {file.name}")


def _fetched(own: str, place: str, size: int) -> bytes:
    """Download the model's file of a release."""
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
    """Unpack the files of a run from a zip; other files in it are ignored."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as opened:
            for each in opened.infolist():
                if each.filename == MANIFEST or FILE_NAME.fullmatch(each.filename):
                    target = work / each.filename
                    target.parent.mkdir(exist_ok=True)
                    target.write_bytes(opened.read(each))
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise SharingError(f"what was fetched is not a zip file of a model: {error}") from error
    return work
