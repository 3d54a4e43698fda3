"""Prescribed attention of heads, as data: a target for each destination role.

    head 1.2:  value 0 → query; else uniform

A *source* is a set of positions, as seen from a destination. A *target* is what an attention row
looks at: one source, or several with weights. A *pattern* gives some destination roles a target
each, and all other rows a common one. Arrows follow the information, from source to destination.
In a *previous-token head*, every value looks at the key of its own fact; in an *induction head*, a
query looks at the value after an earlier copy of its symbol.
"""

from dataclasses import dataclass, replace
from typing import Literal

from hopscope.errors import CircuitError
from hopscope.facts import Role

Where = Literal[
    "own", "all", "others", "previous", "itself", "uniform", "relation", "position", "token",
    "model", "mean", "resample",
]  # fmt: skip
Head = tuple[int, int]
"""Layer and head, counted from 0."""
OF_A_ROLE = ("own", "all", "others")
"""Sources that name a role."""
TABLE_KINDS = ("position", "token")
"""Sources that are tables: mean attention of the model on other examples."""
CARRIED = ("mean", "resample")
"""Instead of attention: what the head brings to the row is replaced."""
UNSAID = ("model", *CARRIED)
"""Sources that say nothing of where a row looks."""
TIMES = " ×"
"""Separates the name of a relation from the number of times that it is followed."""
TABLE_WORDS = {"position": "by position", "token": "by token", "model": "as in the model"}
CHAIN_WORDS = {"all": " of all chains", "others": " of other chains"}


@dataclass(frozen=True, order=True)
class Source:
    """Positions that an attention row looks at.

    | own, all, others | a role in the destination's own chain, in all chains, in the others      |
    | previous, itself | the position before the destination; the destination itself              |
    | uniform          | all positions that the row can see, evenly                               |
    | relation         | where a relation of the task leads, followed `times` times               |
    | position         | a table: mean attention, by the position of destination and source       |
    | token            | a table: mean attention, by the token of destination and source          |
    | model            | the model's own attention in the example (explains nothing)              |
    | mean, resample   | no source: the head brings its mean over examples, or that of another    |
    """

    where: Where
    role: Role | None = None
    relation: str = ""
    """The relation's name; only for the kind "relation"."""
    times: int = 1
    """How many times the relation is followed."""
    head: Head | None = None
    """The head (layer, head) whose mean attention is in the table; only for tables."""

    def __post_init__(self) -> None:
        for what, given, needed in (
            ("role", self.role, self.where in OF_A_ROLE),
            ("relation", self.relation or None, self.where == "relation"),
            ("head", self.head, self.where in TABLE_KINDS),
        ):
            if (given is not None) != needed:
                said = f"needs a {what}" if needed else f"takes no {what}, got {given}"
                raise CircuitError(f"the source {self.where!r} {said}")
        if self.times < 1 or (self.times > 1 and not self.relation):
            raise CircuitError(
                f"the source {self.where!r} is followed {self.times} times; expected a relation, "
                "at least once"
            )

    @property
    def followed(self) -> Role | None:
        """The source role of the path for this source in `Emergence`: the role in the own chain, or
        a role named after the relation (`hop`; followed twice `hop 2`), or `previous`. None for
        sources without such a path.
        """
        if self.where == "own":
            return self.role
        times = self.times if self.times > 1 else 0
        named = self.where in ("relation", "previous")
        return Role(self.relation or self.where, times) if named else None

    def __str__(self) -> str:
        if self.relation:
            return self.relation if self.times == 1 else f"{self.relation}{TIMES}{self.times}"
        if self.role is None:
            return TABLE_WORDS.get(self.where, self.where)
        return f"{self.role}{CHAIN_WORDS.get(self.where, '')}"


@dataclass(frozen=True, order=True)
class Target:
    """Sources with the share of attention that each gets; the shares add up to 1.

    A target may apply only under a condition of the task. Where the condition does not hold, or no
    source can be seen, the row takes the first target in `otherwise` that applies; if none does, it
    attends to its own position.
    """

    parts: tuple[tuple[Source, float], ...]
    when: str = ""
    """The name of a condition; empty: always."""
    otherwise: tuple["Target", ...] = ()

    def __post_init__(self) -> None:
        if any(other.otherwise for other in self.otherwise):
            raise CircuitError(f"{self}: put all targets that come after one another in one list")
        unnamed = [source for source in self.every if source.where in (*TABLE_KINDS, *UNSAID)]
        if (self.when or self.otherwise) and unnamed:
            raise CircuitError(f"{self}: {unnamed[0]} takes no condition and no alternative")
        total = sum(weight for _, weight in self.parts)
        if not self.parts or abs(total - 1) > 1e-3:
            raise CircuitError(f"the weights of a target add up to {total:g}; expected 1")
        if len(self.parts) > 1 and unnamed:
            raise CircuitError(f"{self}: {unnamed[0]} cannot be mixed with other sources")

    @property
    def written(self) -> Literal["rule", "table", "model"]:
        """What describes the row: a rule in the words of the task, a table, or the model itself."""
        where = self.parts[0][0].where
        return "table" if where in TABLE_KINDS else "model" if where in UNSAID else "rule"

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources of this target, without their weights and without those of `otherwise`."""
        return tuple(source for source, _ in self.parts)

    @property
    def every(self) -> tuple[Source, ...]:
        """The sources of this target and of those that may take its place."""
        return (*self.sources, *(source for other in self.otherwise for source in other.sources))

    @property
    def each(self) -> tuple["Target", ...]:
        """The target alone, then those that may take its place."""
        return (replace(self, otherwise=()), *self.otherwise)

    def or_else(self, *others: "Target") -> "Target":
        """The same target, with alternatives (in this order) for where it does not apply."""
        return replace(self, otherwise=(*self.otherwise, *others))

    def if_(self, condition: str) -> "Target":
        """The same target, only at positions where a condition of the task holds."""
        return replace(self, when=condition)

    def __str__(self) -> str:
        if self.otherwise:
            return ", else ".join(map(str, self.each))
        told = " + ".join(f"{weight:.2f} {source}" for source, weight in self.parts)
        if len(self.parts) == 1:
            told = str(self.parts[0][0])
        return f"{told} if {self.when}" if self.when else told


def target(where: Where, role: Role | None = None) -> Target:
    """A target with a single source."""
    return Target(((Source(where, role), 1.0),))


def along(relation: str, times: int = 1) -> Target:
    """The target that a relation of the task, followed `times` times, leads to."""
    return Target(((Source("relation", None, relation, times), 1.0),))


UNIFORM, ITSELF, PREVIOUS = target("uniform"), target("itself"), target("previous")
AS_IN_MODEL = target("model")
MEAN, RESAMPLE = target("mean"), target("resample")
"""The targets of rows to which the head brings its mean over examples (mean ablation), or what it
brings in another example (resample ablation)."""


def table_of(where: Literal["position", "token"], head: Head) -> Target:
    """The target of rows that take a head's mean attention, by position or by token."""
    return Target(((Source(where, head=head), 1.0),))


@dataclass(frozen=True, order=True)
class Pattern:
    """The prescribed attention of a head: a target for some destination roles, and for the rest.

    >>> print(Pattern(((Role("query"), target("own", Role("value", 0))),)))
    value 0 → query; else uniform
    """

    targets: tuple[tuple[Role, Target], ...] = ()
    rest: Target = UNIFORM

    def __post_init__(self) -> None:
        roles = [role for role, _ in self.targets]
        if len(set(roles)) < len(roles):
            raise CircuitError(f"a pattern gives one role two targets: {self}")
        object.__setattr__(self, "targets", tuple(sorted(self.targets)))

    def __hash__(self) -> int:
        """A hash of all fields, computed once, since a search uses it a hundred thousand times."""
        if "_hash" not in self.__dict__:
            object.__setattr__(self, "_hash", hash((self.targets, self.rest)))
        found: int = self.__dict__["_hash"]
        return found

    def __reduce__(self) -> tuple[type["Pattern"], tuple[object, ...]]:
        """Pickle without the saved hash, since hashes of strings differ between processes."""
        return Pattern, (self.targets, self.rest)

    def of(self, role: Role) -> Target:
        """The target of a destination role, or else `rest`."""
        return dict(self.targets).get(role, self.rest)

    @property
    def carried(self) -> tuple[Target, ...]:
        """The targets of rows to which what the head brings is replaced."""
        every = (self.rest, *(target for _, target in self.targets))
        return tuple(its for its in (MEAN, RESAMPLE) if its in every)

    @property
    def attending(self) -> "Pattern":
        """The same, with the model's own attention in rows to which what the head brings is
        replaced.
        """
        looks = dict.fromkeys(self.carried, AS_IN_MODEL)
        targets = tuple((role, looks.get(target, target)) for role, target in self.targets)
        return Pattern(targets, looks.get(self.rest, self.rest))

    def with_target(self, role: Role, new: Target) -> "Pattern":
        """The same pattern, with another target for one role."""
        return Pattern((*((r, t) for r, t in self.targets if r != role), (role, new)), self.rest)

    def without(self, role: Role) -> "Pattern":
        """The same pattern, with `rest` in place of the role's own target."""
        return Pattern(tuple((r, t) for r, t in self.targets if r != role), self.rest)

    def __str__(self) -> str:
        if not self.targets:
            return str(self.rest)
        targets = "; ".join(f"{target} → {role}" for role, target in self.targets)
        return f"{targets}; else {self.rest}"


UNTOUCHED = Pattern(rest=AS_IN_MODEL)
"""The pattern of an unchanged head."""
