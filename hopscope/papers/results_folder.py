"""A folder of tables, one for each target, kept in the repository.

A complete table is `PAPER/FIGURE.jsonl`. While runs are still to be trained, the rows of those that
were measured wait beside it, in `PAPER/FIGURE.PROTOCOL.part.jsonl`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from hopscope.errors import ResultsError
from hopscope.papers.table import PROTOCOLS, Protocol, Table
from hopscope.papers.table_file import anew, protocol_of, read_table
from hopscope.papers.target import Target
from hopscope.store.files import read_bytes, write_bytes, writing
from hopscope.store.lock import locked

PATIENCE = 60.0
"""Seconds for which one process waits for another that writes to the same results."""


def that_came_with_it() -> Path | None:
    """The folder of what was measured for this version: inside an installed package, beside the
    package in its repository.
    """
    package = Path(__file__).parent.parent
    repository = package.parent
    folders = [package / "results"]
    if (repository / "pyproject.toml").is_file():
        folders.append(repository / "results")
    return next((folder for folder in folders if folder.is_dir()), None)


class Results:
    """A folder of tables of these targets."""

    def __init__(self, root: Path, targets: Mapping[str, Target]) -> None:
        self.root = root
        self.targets = targets

    @contextmanager
    def held(self) -> Iterator[None]:
        """No other process reads and writes to the folder within this block."""
        with writing(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
        busy = f"another process writes to {self.root}: wait for it"
        with locked(self.root, busy, PATIENCE):
            yield

    def path(self, target: str) -> Path:
        """The file of a target's complete table."""
        return self.root / f"{target}.jsonl"

    def has(self, target: str) -> bool:
        """True if the target has a complete table."""
        return self.path(target).is_file()

    def written(self, target: str) -> bytes | None:
        """The content of the file of a target's complete table, if there is one."""
        return read_bytes(self.path(target)) if self.has(target) else None

    def any(self) -> bool:
        """Is there a table of any target, or a part of one?"""
        return any(
            path.is_file()
            for target in self.targets
            for path in (self.path(target), *(self.part_path(target, p) for p in PROTOCOLS))
        )

    def table(self, target: str) -> Table:
        """The rows of a target; if there are none, an error that says which command makes them."""
        path = self.path(target)
        if not path.is_file():
            raise ResultsError(
                f"{path} does not exist: `hopscope reproduce {target}` measures what it holds"
            )
        return self._read(path, target)

    def readable(self, target: str) -> Table | None:
        """The rows of a target, if there are any, in a file that can be read."""
        try:
            return self.table(target)
        except ResultsError:
            return None

    def shown(self, target: str) -> Table | None:
        """What is drawn of a target: of its complete table and of parts, what has the most runs;
        of tiny models only if there is no other.
        """
        complete = self.readable(target)
        found = [] if complete is None else [complete]
        with suppress(ResultsError):  # a part that cannot be read hides no complete table
            found += self.parts(target)
        return max(found, key=_tells, default=None)

    def check(self, target: str, protocol: Protocol) -> None:
        """May a table of this protocol be written? One of a better protocol is not replaced."""
        path = self.path(target)
        known = protocol_of(path) if path.is_file() else protocol
        if PROTOCOLS[known] > PROTOCOLS[protocol]:
            raise ResultsError(
                f"{path} holds the {known} protocol, which {protocol} would replace: choose "
                "another folder with --results"
            )

    def save(self, table: Table) -> Path:
        """Write a table; what was kept of an unfinished one that is no better, goes."""
        self.check(table.target, table.protocol)
        path = self.path(table.target)
        write_bytes(path, table.to_bytes())
        for protocol, rank in PROTOCOLS.items():
            if rank <= PROTOCOLS[table.protocol]:
                part = self.part_path(table.target, protocol)
                with writing(part):
                    part.unlink(missing_ok=True)
        return path

    def part_path(self, target: str, protocol: Protocol) -> Path:
        """The file of what is measured so far of a protocol that is not complete."""
        return self.root / f"{target}.{protocol}.part.jsonl"

    def part(self, target: str, protocol: Protocol) -> Table:
        """The rows of the runs that were measured so far, while others are still to be trained."""
        path = self.part_path(target, protocol)
        if not path.is_file():
            return Table(target, protocol, ())
        found = self._read(path, target)
        if found.protocol != protocol or not all(row.run for row in found.rows):
            raise ResultsError(
                f"{path} is no part of the {protocol} protocol: remove it, and {anew(target)}"
            )
        return found

    def parts(self, target: str) -> list[Table]:
        """What there is of protocols that are not complete."""
        found = [self.part(target, protocol) for protocol in PROTOCOLS]
        return [table for table in found if table.runs]

    def so_far(self, target: str) -> list[Table]:
        """All that there is of a target: its complete table, and parts of other protocols."""
        complete = [self.table(target)] if self.has(target) else []
        known = {table.protocol for table in complete}
        return [*complete, *(part for part in self.parts(target) if part.protocol not in known)]

    def readable_so_far(self, target: str) -> tuple[list[Table], bool]:
        """What can be read of it: all that there is, or what is complete; and whether it is all."""
        try:
            return self.so_far(target), True
        except ResultsError:
            complete = self.readable(target)
            return ([] if complete is None else [complete]), False

    def save_part(self, table: Table) -> Path:
        """Keep the rows of some of the runs, beside the complete table that there may be."""
        path = self.part_path(table.target, table.protocol)
        write_bytes(path, table.to_bytes())
        return path

    def _read(self, path: Path, target: str) -> Table:
        return read_table(path, target, self.targets[target].rows)


def _tells(table: Table) -> tuple[bool, int, int]:
    return not table.tiny, len(table.runs), PROTOCOLS[table.protocol]
