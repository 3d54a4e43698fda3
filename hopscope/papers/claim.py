"""A claim: a sentence of a paper with something that we can measure, and what came of it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from hopscope.errors import ResultsUnreadable
from hopscope.papers.results_folder import Results
from hopscope.papers.table import Table

Verdict = Literal["reproduced", "not reproduced", "under a reading", "not measured"]


def verdict(holds: bool) -> Verdict:
    """The verdict on a claim that was measured in full."""
    return "reproduced" if holds else "not reproduced"


def share(right: int, count: int) -> str:
    """How many of how many, in words."""
    return f"{right} of {count}"


@dataclass(frozen=True)
class Finding:
    """What we measured of a claim."""

    ours: str
    """Our value, as the paper writes its own."""
    verdict: Verdict
    evidence: str
    """Runs, protocol, and for "under a reading" which; for "not measured" what would."""


Judge = Callable[[Sequence[Table]], Finding]
"""Called with the tables of a claim's targets."""


@dataclass(frozen=True)
class Claim:
    """What a paper says, in our words, and how to hold it against what we measured."""

    id: str
    """The name of the claim as paper/name, e.g. musat/nonic-above-0.7."""
    says: str
    where: str
    """The section, figure or appendix of the paper that makes the claim."""
    paper: str
    """The value that the paper gives, as text."""
    how: str
    """How we measure it, tolerance included."""
    targets: tuple[str, ...]
    """The results that it is judged from."""
    judge: Judge
    only_full: bool = False
    """A lesser protocol can refute it, and not confirm it: less training cannot show "never"."""

    def finding(self, results: Results) -> Finding:
        """The verdict from a folder of results; what is missing is said with its command, and of
        results that cannot be read, why.
        """
        try:
            return self._finding(results)
        except ResultsUnreadable as error:
            return Finding("–", "not measured", str(error))

    def _finding(self, results: Results) -> Finding:
        tables = [results.table(target) for target in self.targets if results.has(target)]
        measured = {table.target for table in tables if table.rows and not table.missing}
        missing = [target for target in self.targets if target not in measured]
        if missing:
            return Finding("–", "not measured", ", ".join(_what_is_left(results, missing)))
        found = self.judge(tables)
        if any(table.protocol == "smoke" for table in tables):
            return Finding(found.ours, "not measured", "smoke protocol: not the paper's models")
        short = [f"{t.target}: {t.protocol} protocol" for t in tables if t.protocol != "full"]
        if not short or found.verdict == "not measured":
            return found
        evidence = "; ".join([found.evidence, *short])
        if self.only_full and found.verdict == "reproduced":
            return Finding(found.ours, "under a reading", f"{evidence}, which cannot confirm it")
        return Finding(found.ours, found.verdict, evidence)


def _what_is_left(results: Results, missing: Sequence[str]) -> Iterator[str]:
    """The command that measures each target, and how far it came."""
    for target in missing:
        parts = results.parts(target)
        if not parts:
            yield f"`hopscope reproduce {target}`"
        for part in parts:
            yield (
                f"`hopscope reproduce {target} --protocol {part.protocol}`: {len(part.runs)} of "
                f"{part.wanted} runs are measured"
            )
