"""README and the pages of the documentation, as tests read them."""

import re
import shlex
from pathlib import Path

import hopscope

ROOT = Path(hopscope.__file__).parents[1]
WRITTEN = {"reference.md", "fields.md"}
"""Pages that are generated."""
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name not in WRITTEN),
]
PAGES = [page for page in PAGES if "_build" not in page.parts]
BLOCK = re.compile(r"^```(?:\{code-cell\} )?(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|&& )(?:\$ )?(?:srun .* )?hopscope (.+)")


def blocks(page: Path, *languages: str) -> list[str]:
    """The text of each block in one of these languages."""
    return [text for language, text in BLOCK.findall(page.read_text()) if language in languages]


def commands() -> list[str]:
    """Every line of every page that begins with the command, once, without remarks and pipes."""
    found: dict[str, None] = {}
    for page in PAGES:
        for text in blocks(page, "bash", "console"):
            for line in text.replace("\\\n", " ").splitlines():
                if match := COMMAND.search(line.strip()):
                    found[shlex.join(_words(match[1]))] = None
    return [*found]


def _words(line: str) -> list[str]:
    bare = re.split(" > | \\| |…", line)[0]
    return shlex.split(re.sub(r"[\[\]]", "", bare), comments=True)
