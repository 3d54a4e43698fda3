"""What one attention head does, as data: for every role that reads, where it looks.

    head 1.2:  query ← value 0; else uniform

An *aim* is where a row of attention goes: to one target, or to several with weights. A
*mechanism* gives each reading role its aim, and the rest of the rows another (or leaves them as
the model has them). Arrows show the way of the information: from what is read to the reader. A
value that reads the key of its own fact makes a *previous-token head*, a query that reads the
value behind an earlier copy of itself an *induction head*.
"""

from dataclasses import dataclass, replace
from typing import Literal

from hopscope.errors import CircuitError
from hopscope.facts import Role

Where = Literal[
    "own", "all", "others", "elsewhere",
    "previous", "itself", "uniform", "relation", "position", "place", "model",
]  # fmt: skip
OF_A_ROLE = ("own", "all", "others", "elsewhere", "place")
"""Targets that name a role."""
FROM_MODEL = ("position", "place", "model")
"""Targets that stand for the attention of the model itself, averaged or as it is."""
TIMES = " ×"
"""Between the name of a relation and how many times it is followed."""
CHAIN_WORDS = {"all": " of all chains", "others": " of other chains"}


@dataclass(frozen=True, order=True)
class Target:
    """What a row of attention looks at.

    | own, all, others | a role in the reader's own chain, in all chains, in the others, evenly   |
    | elsewhere        | everything but that role of the own chain, evenly                        |
    | previous, itself | the position before the reader; the reader                                |
    | uniform          | everything it may see, evenly                                            |
    | relation         | where a relation of the task leads from the reader, followed so many     |
    |                  | times                                                                    |
    | position         | what the model looks at on average, given the reader's position alone    |
    | place            | the same, given also where a role of the own chain stands                |
    | model            | what the model looks at: no explanation                                  |
    """

    where: Where
    role: Role | None = None
    relation: str = ""
    """The relation's name, for the target of that kind alone."""
    times: int = 1
    """How many times the relation is followed."""

    def __post_init__(self) -> None:
        if (self.where == "relation") != bool(self.relation):
            what = f"takes no relation, got {self.relation!r}" if self.relation else "needs a name"
            raise CircuitError(f"the target {self.where!r} {what}")
        if self.times < 1 or (self.times > 1 and not self.relation):
            raise CircuitError(
                f"the target {self.where!r} is followed {self.times} times; expected a relation, "
                "at least once"
            )
        if (self.where in OF_A_ROLE) != (self.role is not None):
            what = f"takes no role, got {self.role}" if self.role else "needs a role"
            raise CircuitError(f"the target {self.where!r} {what}")

    def __str__(self) -> str:
        if self.relation:
            return self.relation if self.times == 1 else f"{self.relation}{TIMES}{self.times}"
        if self.role is None:
            return {"position": "by position", "model": "as it is"}.get(self.where, self.where)
        if self.where == "place":
            return f"by place of {self.role}"
        if self.where == "elsewhere":
            return f"all but {self.role}"
        return f"{self.role}{CHAIN_WORDS.get(self.where, '')}"


@dataclass(frozen=True, order=True)
class Aim:
    """Targets and how much of the attention each gets; the weights add up to 1.

    An aim may hold under a condition of the task only. Where that does not hold, or where none of
    the targets can be seen, the row takes the first of the aims in `otherwise` that it can; where
    there is none, it stays where it is.
    """

    parts: tuple[tuple[Target, float], ...]
    when: str = ""
    """The name of a condition; empty: always."""
    otherwise: tuple["Aim", ...] = ()

    def __post_init__(self) -> None:
        if any(other.otherwise for other in self.otherwise):
            raise CircuitError(f"{self}: put all aims that come after one another in one list")
        if (self.when or self.otherwise) and any(t.where in FROM_MODEL for t in self.every):
            raise CircuitError(
                f"{self}: what the model does is the same under all conditions, and nothing comes "
                "after it"
            )
        total = sum(weight for _, weight in self.parts)
        if not self.parts or abs(total - 1) > 1e-3:
            raise CircuitError(f"the weights of an aim add up to {total:g}; expected 1")
        if len(self.parts) > 1 and any(t.where in FROM_MODEL for t in self.targets):
            raise CircuitError(f"{self}: what the model does cannot be mixed with other targets")

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets of this aim, without their weights and without those of `otherwise`."""
        return tuple(target for target, _ in self.parts)

    @property
    def every(self) -> tuple[Target, ...]:
        """The targets of this aim and of those that may take its place."""
        return (*self.targets, *(target for other in self.otherwise for target in other.targets))

    @property
    def each(self) -> tuple["Aim", ...]:
        """The aim alone, then those that may take its place."""
        return (replace(self, otherwise=()), *self.otherwise)

    def or_else(self, *others: "Aim") -> "Aim":
        """The same aim, with others that are tried in this order where it leads nowhere."""
        return replace(self, otherwise=(*self.otherwise, *others))

    def if_(self, condition: str) -> "Aim":
        """The same aim, at those positions alone where a condition of the task holds."""
        return replace(self, when=condition)

    def __str__(self) -> str:
        if self.otherwise:
            return ", else ".join(map(str, self.each))
        told = " + ".join(f"{weight:.2f} {target}" for target, weight in self.parts)
        if len(self.parts) == 1:
            told = str(self.parts[0][0])
        return f"{told} if {self.when}" if self.when else told


def aim(where: Where, role: Role | None = None) -> Aim:
    """An aim at a single target."""
    return Aim(((Target(where, role), 1.0),))


def along(relation: str, times: int = 1) -> Aim:
    """An aim at where a relation of the task leads, followed so many times."""
    return Aim(((Target("relation", None, relation, times), 1.0),))


UNIFORM, ITSELF, PREVIOUS = aim("uniform"), aim("itself"), aim("previous")
BY_POSITION, AS_IS = aim("position"), aim("model")


@dataclass(frozen=True, order=True)
class Mechanism:
    """Where each role looks, and where the rest of the rows do.

    >>> print(Mechanism(((Role("query"), aim("own", Role("value", 0))),)))
    query ← value 0; else uniform
    """

    aims: tuple[tuple[Role, Aim], ...] = ()
    rest: Aim = UNIFORM

    def __post_init__(self) -> None:
        readers = [role for role, _ in self.aims]
        if len(set(readers)) < len(readers):
            raise CircuitError(f"a mechanism gives one role two aims: {self}")
        object.__setattr__(self, "aims", tuple(sorted(self.aims)))

    def __hash__(self) -> int:
        """A hash of all fields, computed once: a search asks for it a hundred thousand times."""
        if "_hash" not in self.__dict__:
            object.__setattr__(self, "_hash", hash((self.aims, self.rest)))
        found: int = self.__dict__["_hash"]
        return found

    def __reduce__(self) -> tuple[type["Mechanism"], tuple[object, ...]]:
        """Hashes differ between processes, so copies are made anew."""
        return Mechanism, (self.aims, self.rest)

    def of(self, role: Role) -> Aim:
        """The aim of the rows of a role: its own, or else `rest`."""
        return dict(self.aims).get(role, self.rest)

    def with_aim(self, role: Role, new: Aim) -> "Mechanism":
        """The same mechanism, with another aim for one role."""
        return Mechanism((*((r, a) for r, a in self.aims if r != role), (role, new)), self.rest)

    def without(self, role: Role) -> "Mechanism":
        """The same mechanism, with `rest` in place of the role's own aim."""
        return Mechanism(tuple((r, a) for r, a in self.aims if r != role), self.rest)

    @property
    def readers(self) -> tuple[Role, ...]:
        """The roles that have an aim of their own."""
        return tuple(role for role, _ in self.aims)

    def __str__(self) -> str:
        if not self.aims:
            return str(self.rest)
        aims = "; ".join(f"{role} ← {aim}" for role, aim in self.aims)
        return f"{aims}; else {self.rest}"
