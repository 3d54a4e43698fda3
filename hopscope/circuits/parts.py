"""What a circuit is made of: its heads, its parts, and what was measured of them."""

from typing import Annotated, Literal

from pydantic import BeforeValidator

from hopscope.circuits.ablation import Head
from hopscope.circuits.mechanism import Mechanism
from hopscope.configs import Config, Discovery
from hopscope.facts import Role
from hopscope.theory import Path


def _path(kept: object) -> object:
    """A path of format 1 in the words of format 2."""
    if not isinstance(kept, dict):
        return kept
    return {{"query": "reader", "key": "source"}.get(name, name): it for name, it in kept.items()}


PATH_SHARE = Discovery().path_share
"""The least share of a row's attention that makes its target a path, unless told otherwise."""
KeptPath = Annotated[Path, BeforeValidator(_path)]
Kind = Literal["carries", "locates", "weak", "background"]


class HeadReport(Config):
    """One head, and the mechanism that stands for it in the circuit."""

    layer: int
    head: int
    mechanism: Mechanism

    @property
    def at(self) -> Head:
        """The head as (layer, head), both counted from 0."""
        return (self.layer, self.head)

    @property
    def name(self) -> str:
        """The mechanism in a few words, if there are such. *Previous position* is the field's
        previous-token head: every value reads the key of its own fact.
        """
        mechanism = self.mechanism
        targets = {aim.targets[0] for _, aim in mechanism.aims if len(aim.parts) == 1}
        if not mechanism.aims:
            return "idle"
        if all(_reads_own_key(reader, paths) for reader, paths in _sources(mechanism).items()):
            return "previous position"
        if {target.where for target in targets} == {"position"}:
            return "by position"
        return ""


class Estimate(Config):
    """A mean over examples, and its 95 % interval (`hopscope.intervals.mean`)."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ({self.low:.3f} … {self.high:.3f})"


class Part(Config):
    """A part of the circuit: one row of a head that forms paths, or its rows that form none.

    | kind       | what removing the part does to the loss                                        |
    | carries    | multiplies it by 3 or more when all other heads follow the circuit             |
    | locates    | multiplies it by 3 or more only where later heads find their sources           |
    |            | themselves: the part tells them where to look (as a previous-token head does)  |
    | weak       | less than that, for a row that forms a path; yet the task needs it             |
    | background | less than that, for other rows: they add to every position something that      |
    |            | later heads were trained with                                                  |
    """

    layer: int
    head: int
    also: tuple[int, ...] = ()
    """Other heads of the layer that do the same; the part is all of them together."""
    readers: tuple[Role, ...]
    """The roles whose rows of attention are meant."""
    paths: tuple[KeptPath, ...] = ()
    kind: Kind
    cost: Estimate
    """Loss without the part when all other heads follow the circuit."""
    own_cost: Estimate
    """Loss without the part when needed rows keep the model's attention and all others are
    ablated."""
    alone_cost: Estimate
    """Loss of the model as it is, without this part alone."""
    votes: float
    """Share of the fresh batches in which the part is of the same kind."""

    @property
    def at(self) -> Head:
        """The first head of the part as (layer, head); `heads` has the others as well."""
        return (self.layer, self.head)

    @property
    def heads(self) -> tuple[Head, ...]:
        """All heads of the part as (layer, head)."""
        return tuple((self.layer, head) for head in (self.head, *self.also))

    @property
    def name(self) -> str:
        """The layer and the heads of the part, written `1.2` or `1.2+3`."""
        return f"{self.layer}.{'+'.join(map(str, (self.head, *self.also)))}"


class Alternative(Config):
    """A path outside of the circuit that can replace one of its paths: a backup head's, as the
    field says.
    """

    path: KeptPath
    instead_of: KeptPath
    loss: float
    """Loss of the circuit with the one in place of the other."""


class Shared(Config):
    """One step that several heads do together."""

    reader: Role
    source: Role
    heads: tuple[Head, ...]
    cost: Estimate
    """Loss without all of these heads' rows that do the step."""


class Restored(Config):
    """A head that the circuit leaves out, with its own attention given back."""

    layer: int
    head: int
    loss: float
    """Loss of the circuit with this head's own attention given back."""


class Losses(Config):
    """Losses of every hop, over the same fresh examples."""

    clean: tuple[float, ...]
    """Losses of the model as it is."""
    ideal: tuple[float, ...]
    """Losses when every head follows its mechanism."""
    own: tuple[float, ...]
    """Losses when needed rows keep the model's attention and all others are ablated."""
    ablated: tuple[float, ...]
    """Losses when every head is ablated."""
    guess: float
    """The loss of an answer that ignores how the facts connect."""
    limit: float
    """The task counts as solved up to this mean loss."""

    def mean(self, which: Literal["clean", "ideal", "own", "ablated"]) -> float:
        """The mean over the hops."""
        hops: tuple[float, ...] = getattr(self, which)
        return sum(hops) / len(hops)


class FlowCheck(Config):
    """What the depth theory says of the paths: information followed along them alone."""

    reached: tuple[str, ...]
    """Symbols that the query comes to hold."""
    missed: tuple[str, ...]
    """Symbols that the query asks for and does not come to hold."""
    jumps: tuple[KeptPath, ...]
    """Paths whose reader and source have nothing in common by which to find one another."""


class Switches(Config):
    """All that was chosen for a search, so that every number can be measured again."""

    examples: int
    """Examples of the search, as in `settings`, which circuits of format 1 lack."""
    batches: int
    """Batches of fresh examples, as in `settings`."""
    seed: int
    """The seed by which the examples were drawn."""
    forced: bool
    """Was a model to be searched that had not learned its task?"""
    settings: Discovery | None = None
    """All thresholds of the search; None in circuits of format 1, which did not keep them."""
    version: str | None = None
    """The version of hopscope that searched; None in circuits of format 1."""


def paths_of(head: Head, mechanism: Mechanism, share: float = PATH_SHARE) -> tuple[Path, ...]:
    """The paths of a mechanism: roles that read roles of their own chain with this share of
    their attention or more.
    """
    sources = _sources(mechanism, share)
    return tuple(Path(*head, reader, s) for reader, found in sources.items() for s in found)


def _sources(mechanism: Mechanism, share: float = PATH_SHARE) -> dict[Role, list[Role]]:
    """For every reader, the roles of its own chain that it reads: the sources of its paths.

    The role `other` stands for nothing in particular, so no path comes from there.
    """
    return {
        reader: [
            target.role
            for target, weight in aim.parts
            if target.where == "own"
            and target.role is not None
            and target.role.kind != "other"
            and target.role != reader
            and weight >= share
        ]
        for reader, aim in mechanism.aims
    }


def _reads_own_key(reader: Role, sources: list[Role]) -> bool:
    """True if a value reads a key of its own fact, as in a previous-token head."""
    if reader.kind != "value" or not sources:
        return False
    return all(source.kind == "key" and source.fact == reader.fact for source in sources)
