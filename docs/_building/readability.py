"""`python docs/_building/readability.py` measures how hard the pages are to read.

Prose only: code, tables, directives and front matter are left out, and so are generated pages.
Flesch's reading ease is 206.8 - 1.015 words a sentence - 84.6 syllables a word: higher is easier,
60 is plain English, below 30 is for academics.
"""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
GENERATED = {"reference.md", "fields.md"}
LEFT_OUT = re.compile(
    r"\A---\n.*?\n---\n|^```.*?^```|^:::.*?^:::|^\|.*?$|^#.*?$|^    .*?$", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|\{[\w-]+\}|<[^>]*>|[`*_]")
END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z*`\d(])|\n\s*\n|^\s*(?:[*-]|\d+\.)\s+", re.MULTILINE)
STIFF = {
    "Of … at the start": r"(?:^|[.:;] )Of (?:a|an|the|all|every|each|these|those|single|many)\b",
    "What/Who … as a noun": r"(?:^|[.:;,] )(?:What|Who|Whoever|what|who|whoever)\b[^.?!]*[^?]$",
    "is told, is said": r"\b(?:is|are|was|were) (?:told|said)\b",
    "by which, of which": r"\b(?:by|of|for|in|from) which\b",
    "so, as a pronoun": r"\b(?:is|was|do|does|did) so\b",
}
"""Patterns of stiff English, each counted by sentence."""


class Measured(NamedTuple):
    words: int
    sentences: int
    syllables: int
    long: int
    stiff: int

    def line(self, name: str) -> str:
        mean = self.words / max(1, self.sentences)
        ease = 206.835 - 1.015 * mean - 84.6 * self.syllables / max(1, self.words)
        long = 100 * self.long / max(1, self.sentences)
        return f"{name:34} {self.words:7,} {mean:6.1f} {long:6.1f}% {ease:6.1f} {self.stiff:6}"


def sentences(text: str) -> list[str]:
    """The sentences of a page, in plain words."""
    prose = LEFT_OUT.sub("\n\n", text)
    found = (" ".join(LINK.sub(r"\1", each).split()) for each in END.split(prose) if each)
    return [each for each in found if len(each.split()) >= 3]


def syllables(word: str) -> int:
    """An estimate: groups of vowels, without a silent e."""
    bare = re.sub(r"[^a-z]", "", word.lower())
    groups = len(re.findall(r"[aeiouy]+", bare))
    silent = bare.endswith("e") and not bare.endswith(("le", "ee")) and groups > 1
    return max(1, groups - silent)


def measured(found: list[str]) -> Measured:
    words = [word for each in found for word in each.split() if re.search("[A-Za-z]", word)]
    long = sum(len(each.split()) > 25 for each in found)
    stiff = sum(bool(re.search(each, line)) for each in STIFF.values() for line in found)
    return Measured(len(words), len(found), sum(map(syllables, words)), long, stiff)


def pages() -> list[Path]:
    """The pages that somebody writes: of the documentation, and beside it."""
    docs = (ROOT / "docs").rglob("*.md")
    written = [page for page in docs if "_build" not in page.parts and page.name not in GENERATED]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(written)]


if __name__ == "__main__":
    print(f"{'page':34} {'words':>7} {'/sent.':>6} {'> 25':>7} {'ease':>6} {'stiff':>6}")
    everything: list[str] = []
    for page in pages():
        found = sentences(page.read_text(encoding="utf-8"))
        everything += found
        print(measured(found).line(str(page.relative_to(ROOT))))
    print(measured(everything).line("all"))
