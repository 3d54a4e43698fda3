"""What a circuit is made of: its heads, its parts, and what was measured of them."""

from typing import Literal

from hopscope.circuits.ablation import Head
from hopscope.circuits.mechanism import ITSELF, UNIFORM, Mechanism
from hopscope.configs import Config, Discovery
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.theory import Path

PATH_SHARE = Discovery.path_share
"""The least share of a row's attention that makes its target a path, unless told otherwise."""
Which = Literal["clean", "ideal", "own", "ablated"]
"""A state of the model whose losses a circuit keeps (`Losses`)."""
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
        previous-token head: every value reads the key of its own fact. *Idle* is a head that
        attends evenly, or to itself; one that stays as in the model is not.
        """
        mechanism = self.mechanism
        targets = {aim.targets[0] for _, aim in mechanism.aims if len(aim.parts) == 1}
        if not mechanism.aims:
            return "idle" if mechanism.rest in (UNIFORM, ITSELF) else ""
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
    | locates    | multiplies it by 3 or more only where later heads compute their attention (in  |
    |            | the circuit or in the model), and a later path reads at its positions or from  |
    |            | them: the part tells heads where to look (as a previous-token head does)       |
    | weak       | neither, for a row that forms a path; yet the task needs it                    |
    | background | neither, for other rows: they add something that later heads were trained with |

    In a language model a row *carries* if the answer follows its values, and *locates* if the
    answer follows or leaves by the queries or keys of later heads (`Move`).
    """

    layer: int
    head: int
    also: tuple[int, ...] = ()
    """Other heads of the layer that do the same; the part is all of them together."""
    readers: tuple[Role, ...]
    """The roles whose rows of attention are meant."""
    paths: tuple[Path, ...] = ()
    kind: Kind | None = None
    """None: none of these was found."""
    cost: Estimate | None = None
    """Loss without the part when all other heads follow the circuit; None: not measured."""
    own_cost: Estimate | None = None
    """Loss without the part when the circuit's rows attend by themselves and all else is ablated;
    None: not measured."""
    alone_cost: Estimate | None = None
    """Loss of the model without this part alone (of a language model: with a donor's row in its
    place, on the questions of the search); None: not measured."""
    votes: float | None = None
    """Share of the fresh batches in which the part is of the same kind; None: not measured."""

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

    path: Path
    instead_of: Path
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
    """Losses when every head follows its mechanism (of a language model: when every row outside of
    the circuit is a donor's)."""
    own: tuple[float, ...] | None = None
    """Losses when the circuit's rows compute their attention from what the circuit alone provides,
    and everything else is ablated; None: not measured."""
    ablated: tuple[float, ...]
    """Losses when every head is ablated (of a language model: when every row is a donor's)."""
    guess: float
    """The loss of an answer that ignores how the facts connect."""
    limit: float
    """The task counts as solved up to this mean loss."""
    hop_limits: tuple[float, ...]
    """And up to this loss of each hop."""

    def mean(self, which: Which) -> float:
        """The mean over the hops."""
        hops = self._hops(which)
        return sum(hops) / len(hops)

    def low(self, which: Which) -> bool:
        """True if the task counts as solved with these losses: on average, and hop by hop."""
        hops = zip(self._hops(which), self.hop_limits, strict=True)
        return self.mean(which) <= self.limit and all(loss <= limit for loss, limit in hops)

    def _hops(self, which: Which) -> tuple[float, ...]:
        hops: tuple[float, ...] | None = getattr(self, which)
        if hops is None:
            raise CircuitError(f"the loss {which!r} of this circuit was not measured")
        return hops


class FlowCheck(Config):
    """What the depth theory says of the paths: information followed along them alone."""

    reached: tuple[str, ...]
    """Symbols that the query comes to hold."""
    missed: tuple[str, ...]
    """Symbols that the query asks for and does not come to hold."""
    jumps: tuple[Path, ...]
    """Paths whose reader and source have nothing in common by which to find one another."""


class Switches(Config):
    """All that was chosen for a search, so that every number can be measured again."""

    examples: int
    """Examples of the search."""
    batches: int
    """Batches of fresh examples on which the circuit was measured."""
    seed: int
    """The seed by which the examples were drawn."""
    forced: bool
    """Was a model to be searched that had not learned its task?"""
    settings: Discovery | None = None
    """All thresholds of the search; None: patches found it, in a language model."""
    version: str
    """The version of hopscope that searched."""


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
