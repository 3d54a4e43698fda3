"""A claim: a sentence of a paper with something that we can measure, and what came of it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hopscope import intervals
from hopscope.display import Displayed
from hopscope.errors import ResultsError
from hopscope.papers.basis import basis
from hopscope.papers.results_folder import Results
from hopscope.papers.table import Table

Verdict = Literal["reproduced", "not reproduced", "under a reading", "not measured"]


def verdict(holds: bool) -> Verdict:
    """The verdict on a claim that was measured in full."""
    return "reproduced" if holds else "not reproduced"


def share(right: int, count: int) -> str:
    """How many of how many, in words."""
    return f"{right} of {count}"


def share_drawn(right: int, count: int, what: str) -> str:
    """The same of what was drawn, as seeds are: with the interval of the share.

    >>> share_drawn(2, 3, "models")
    '2 of 3 models (95 %: 0.21 … 0.94)'
    """
    low, high = intervals.share(right, count)
    return f"{share(right, count)} {what} (95 %: {low:.2f} … {high:.2f})"


def span(values: Iterable[float], digits: int | None = None) -> str:
    """From the least to the greatest, rounded unless they are exact.

    >>> span([0.9951, 0.9948, 0.995], 3)
    '0.995'
    >>> span([0.3, -0.1], 1)
    '−0.1 … 0.3'
    """
    found = sorted(values)
    ends = [
        (f"{value}" if digits is None else f"{value:.{digits}f}").replace("-", "−")
        for value in (found[0], found[-1])
    ]
    return ends[0] if ends[0] == ends[1] else " … ".join(ends)


@dataclass(frozen=True)
class Finding(Displayed):
    """What we measured of a claim."""

    ours: str
    """Our value, as the paper writes its own."""
    verdict: Verdict
    evidence: str
    """Runs, protocol, and for "under a reading" which; for "not measured" what would decide, or why
    ours does not."""
    basis: str = ""
    """How many models and seeds were measured for each table that the judge was given, and what
    training them cost."""

    def __repr__(self) -> str:
        return f"Finding({self.verdict}: {self.ours})"


Judge = Callable[[Sequence[Table]], Finding]
"""Called with the tables of a claim's targets."""


@dataclass(frozen=True)
class Reason:
    """Why a claim does not hold, by an experiment that anybody can repeat."""

    says: str
    command: str
    """What shows it."""


@dataclass(frozen=True)
class Claim(Displayed):
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
    beside: tuple[str, ...] = ()
    """Results of which the judge gets all tables as well, behind the others, complete or not: of
    models under other readings, or with other seeds."""
    counting: Callable[[Sequence[Table]], Sequence[Table]] = list
    """Which of the tables count: all, unless some hold nothing that others do not hold better."""
    reason: Reason | None = None
    """Why it is not reproduced, where it is not."""

    def __repr__(self) -> str:
        return f"Claim({self.id!r}, {self.says!r})"

    @property
    def sources(self) -> tuple[str, ...]:
        """All results that it is judged from."""
        return (*self.targets, *self.beside)

    def why(self, found: Finding) -> Reason | None:
        """Why it does not hold, if that is what was found."""
        return self.reason if found.verdict == "not reproduced" else None

    def finding(self, results: Results) -> Finding:
        """The verdict from a folder of results; what is missing is said with its command, and of
        results that cannot be read, why.
        """
        try:
            return self._finding(results)
        except ResultsError as error:
            return Finding("–", "not measured", str(error))

    def _finding(self, results: Results) -> Finding:
        tables = [results.table(target) for target in self.targets if results.has(target)]
        measured = {table.target for table in tables if table.rows and not table.missing}
        missing = [target for target in self.targets if target not in measured]
        if missing:
            return Finding("–", "not measured", ", ".join(_what_is_left(results, missing)))
        others = {name: results.readable_so_far(name) for name in self.beside}
        beside = [table for known, _ in others.values() for table in known if not table.tiny]
        if any(table.tiny for table in tables):
            return Finding("–", "not measured", "smoke protocol: not the paper's models")
        counted = self.counting([*tables, *beside])
        found = self.judge(counted)
        left_out = [
            f"a part of {name} cannot be read" for name, (_, all_) in others.items() if not all_
        ]
        found = replace(found, evidence="; ".join([found.evidence, *left_out]))
        told = [basis(t, results.targets[t.target]) for t in counted]
        found = replace(found, basis="; ".join(filter(None, told)))
        short = any(table.protocol != "full" for table in counted)
        if short and self.only_full and found.verdict == "reproduced":
            shorter = [
                f"{each.target}, {each.remark or 'another protocol'}"
                for each in counted
                if each.protocol != "full"
            ]
            words = (
                f"{found.evidence}; holds with less training than the paper's, which cannot "
                f"confirm it: {' / '.join(shorter)}"
            )
            return replace(found, verdict="under a reading", evidence=words)
        return found


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
