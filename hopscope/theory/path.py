"""A path of a circuit: one head that lets the positions of one role read those of another."""

from dataclasses import dataclass

from hopscope.facts import Role
from hopscope.theory.flow import Reading


@dataclass(frozen=True, order=True)
class Path:
    """In one head, positions with the role `reader` attend to positions with the role `source`.

    Information flows from the source to the reader, and that is the way in which the arrow points.

    >>> print(Path(1, 0, Role("query"), Role("value", 0)))
    layer 1 head 0: query ← value 0
    """

    layer: int
    head: int
    reader: Role
    source: Role

    def __str__(self) -> str:
        return f"layer {self.layer} head {self.head}: {self.reader} ← {self.source}"

    @property
    def reading(self) -> Reading:
        """The same without the head: who reads whom in which layer."""
        return Reading(self.layer, self.reader, self.source)
