"""The page as static files, which open without a server: a folder, or a single file.

    site/index.html     the page, with the policy that it keeps to
    site/page.js        its modules, joined
    site/engine.js      the modules that compute, joined
    site/data.js        the run
    site/….css, ….svg   as they are

A single file holds the same inline, and the policy names each script and style by its hash. Every
file begins with a mark; a file without it is somebody else's, and is not written over.
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
WORDS = b" written by hopscope, which may write it anew "
MARKUP, CODE = b"<!--" + WORDS + b"-->\n", b"/*" + WORDS + b"*/\n"
"""Marks of our own files: of HTML and SVG, of scripts and styles."""
UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Characters that could end a script, or a line of it, written so that they do not."""


def check_target(path: Path, folders: bool = True) -> None:
    """Refuse, before anything is measured, a place where no page can be written: among others where
    a file is that is not hopscope's own.
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
    """The files of a page: itself, or those in a folder. The page is last, when all that it loads
    is there.
    """
    if path.suffix:
        return [path]
    page = static_text("index.html")
    names = [*STYLE.findall(page), *ICON.findall(page), *SCRIPTS, "index.html"]
    return [path / name for name in names]


def write_page(
    views: "Views", id_: str, path: Path, seed: int | None = None, step: int | None = None
) -> Path:
    """Write the page of a run, as one file or into a folder, made if need be; where it is."""
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
    """What of a page in a folder is not as it is here: its data, scripts and HTML."""
    # The word `file:` lets the page load its own scripts where it is opened from a disk.
    policy = _policy("'self' file:", "'self' file:")
    scripts = dict(zip(SCRIPTS, _scripts(data), strict=True))
    return {**scripts, "index.html": _filled(static_text("index.html"), policy, LOADED, {})}


def inline(data: Mapping[str, Any]) -> str:
    """The page with everything inside, as text; `data` is what it carries."""
    page = static_text("index.html")
    styles = {name: f"\n{_with_icons(static_text(name))}" for name in STYLE.findall(page)}
    scripts = _scripts(data)
    policy = _policy(" ".join(map(_hash, scripts)), " ".join(map(_hash, styles.values())))
    written = "".join(f"<script>{script}</script>\n" for script in scripts)
    return _filled(page, policy, written, styles)


def _scripts(data: Mapping[str, Any]) -> list[str]:
    """What a page runs: its data, what computes, and the page itself."""
    engine = joined_script(ENGINE, static_text, "hopscopeEngine")
    return [data_script(data), engine, joined_script(ENTRY, static_text)]


def data_script(data: Mapping[str, Any]) -> str:
    """The run as a script that sets one global name."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter, escaped in UNSAFE.items():
        text = text.replace(letter, escaped)
    return f"globalThis.hopscopeData = {text};\n"


def _filled(page: str, policy: str, scripts: str, styles: Mapping[str, str]) -> str:
    """The page with its policy and scripts, and with its styles inside if they are given."""
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
    """No request goes anywhere, and a worker is made of what the page has; a page may be shown in a
    frame of another.
    """
    return (
        f"default-src 'none'; script-src {scripts} 'wasm-unsafe-eval'; style-src {styles}; "
        "worker-src blob:; "
        "img-src 'self' file: data: blob:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _with_icons(style: str) -> str:
    """The style with the pictures that it names inside."""
    return URL.sub(lambda match: f'url("{_as_data(match[1])}")', style)


def _as_data(name: str) -> str:
    content = base64.b64encode((STATIC / name).read_bytes()).decode()
    return f"data:image/svg+xml;base64,{content}"
