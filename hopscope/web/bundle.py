"""The page as static files that open without a server: a folder, or a single file.

    site/index.html     the page, with its content security policy
    site/page.js        its modules, joined
    site/engine.js      the modules that compute, joined
    site/data.js        the run
    site/….css, ….svg   unchanged

A single file holds the same inline; its policy names each script and style by its hash. Every file
begins with a mark; an existing file without the mark is not overwritten.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopscope.errors import ConfigError
from hopscope.store.files import check_files, check_folder, write_bytes, writing
from hopscope.web.carried import carried
from hopscope.web.joined import joined_script
from hopscope.web.page import STATIC, static_text

if TYPE_CHECKING:
    from hopscope.web.views import Views

ENTRY = "saved.js"
ENGINE = "worker.js"
HEAD = '<meta charset="utf-8">'
STYLE = re.compile(r'<link rel="stylesheet" href="([\w-]+\.css)">\n')
ICON = re.compile(r'<link rel="icon" href="([\w-]+\.svg)" type="image/svg\+xml">\n')
URL = re.compile(r'url\("([\w-]+\.svg)"\)')
SCRIPT = re.compile(r'<script type="module" src="[\w-]+\.js"></script>\n')
SCRIPTS = ("data.js", "engine.js", "page.js")
LOADED = "".join(f'<script src="{name}" defer></script>\n' for name in SCRIPTS)
NOTICE = b" written by hopscope, which may write it anew "
MARKUP, CODE = b"<!--" + NOTICE + b"-->\n", b"/*" + NOTICE + b"*/\n"
"""Marks at the beginning of written files: for HTML and SVG, for scripts and styles."""
UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Escapes of characters that could end a script or a line of it."""


def check_target(path: Path, folders: bool = True) -> None:
    """Raise ConfigError if no page can be written to this path, for example over a file that
    hopscope did not write. Call it before anything is measured.
    """
    either = ", or a folder" if folders else ""
    if path.suffix != ".html" and (path.suffix or not folders):
        raise ConfigError(f"--save is {path}; expected a name that ends in .html{either}")
    if not path.suffix:
        check_folder(path)
    check_files(*files_of(path))
    for file in filter(Path.exists, files_of(path)):
        with writing(file), file.open("rb") as opened:
            if not opened.read(len(MARKUP)).startswith((MARKUP, CODE)):
                raise ConfigError(
                    f"{file} is there, and hopscope did not write it: choose another name"
                )


def files_of(path: Path) -> list[Path]:
    """Return the files of a page: itself, or those in a folder. index.html is written last, after
    the files that it loads.
    """
    if path.suffix:
        return [path]
    page = static_text("index.html")
    names = [*STYLE.findall(page), *ICON.findall(page), *SCRIPTS, "index.html"]
    return [path / name for name in names]


def write_page(
    views: "Views", id_: str, path: Path, seed: int | None = None, step: int | None = None
) -> Path:
    """Write the page of a run as one file or into a (new) folder; return the path to open."""
    check_target(path)
    files, data = files_of(path), carried(views, id_, seed, step)
    made = {path.name: inline(data)} if path.suffix else _site(data)
    if not path.suffix:
        path.mkdir(parents=True, exist_ok=True)
    for file in files:
        mark = MARKUP if file.suffix in (".html", ".svg") else CODE
        write_bytes(file, mark + (made.get(file.name) or static_text(file.name)).encode())
    return files[-1]


def _site(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the generated files of a page in a folder: data, scripts and HTML."""
    # `file:` lets the page load its own scripts if it is opened from a disk.
    policy = _policy("'self' file:", "'self' file:")
    scripts = dict(zip(SCRIPTS, _scripts(data), strict=True))
    return {**scripts, "index.html": _filled(static_text("index.html"), policy, LOADED, {})}


def inline(data: Mapping[str, Any]) -> str:
    """Return the page as one HTML text with `data`, scripts and styles inside."""
    page = static_text("index.html")
    styles = {name: f"\n{_with_icons(static_text(name))}" for name in STYLE.findall(page)}
    scripts = _scripts(data)
    policy = _policy(" ".join(map(_hash, scripts)), " ".join(map(_hash, styles.values())))
    written = "".join(f"<script>{script}</script>\n" for script in scripts)
    return _filled(page, policy, written, styles)


def _scripts(data: Mapping[str, Any]) -> list[str]:
    """Return the scripts of a page: its data, the engine, and the page itself."""
    engine = joined_script(ENGINE, static_text, "hopscopeEngine")
    return [data_script(data), engine, joined_script(ENTRY, static_text)]


def data_script(data: Mapping[str, Any]) -> str:
    """Return the run as a script that sets the global `hopscopeData`."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter, escaped in UNSAFE.items():
        text = text.replace(letter, escaped)
    return f"globalThis.hopscopeData = {text};\n"


def _filled(page: str, policy: str, scripts: str, styles: Mapping[str, str]) -> str:
    """Return the page with its policy and scripts, and with `styles` inline if there are any."""
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    page = _replaced(page, re.compile(re.escape(HEAD)), f"{HEAD}\n{meta}")
    page = _replaced(page, SCRIPT, "")
    page = _replaced(page, re.compile("</body>"), f"{scripts}</body>")
    if not styles:
        return page
    for name, style in styles.items():
        page = page.replace(f'<link rel="stylesheet" href="{name}">', f"<style>{style}</style>")
    return ICON.sub(lambda match: f'<link rel="icon" href="{_as_data(match[1])}">\n', page)


def _replaced(page: str, pattern: re.Pattern[str], text: str) -> str:
    page, count = pattern.subn(lambda _: text, page)
    assert count == 1, f"index.html has {pattern.pattern!r} {count} times"
    return page


def _policy(scripts: str, styles: str) -> str:
    """Return the content security policy: no requests, and workers only from blobs of the page.

    Other pages may show the page in a frame.
    """
    return (
        f"default-src 'none'; script-src {scripts} 'wasm-unsafe-eval'; style-src {styles}; "
        "worker-src blob:; "
        "img-src 'self' file: data: blob:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _with_icons(style: str) -> str:
    """Return the style with its pictures inline."""
    return URL.sub(lambda match: f'url("{_as_data(match[1])}")', style)


def _as_data(name: str) -> str:
    content = base64.b64encode((STATIC / name).read_bytes()).decode()
    return f"data:image/svg+xml;base64,{content}"
