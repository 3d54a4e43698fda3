"""Facts and roles, the concepts that all of hopscope builds on; no torch here.

A *fact* maps one or more key symbols to a value symbol. A *fact graph* is the set of facts
of one chain; a question starts from the symbols that no fact produces. Tasks, prompts and
depth laws are all derived from such a graph.

A *role* is what a position stands for: the key or the value of a fact, or the query. Chains
are shuffled in every example, so positions cannot be compared across examples, but roles can.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

from hopscope.errors import CircuitError, ConfigError


@dataclass(frozen=True)
class Fact:
    """One look-up: all keys together lead to the value."""

    keys: tuple[str, ...]
    value: str

    def __str__(self) -> str:
        return f"{','.join(self.keys)}->{self.value}"


@dataclass(frozen=True)
class FactGraph:
    """The facts of one chain, each after the facts that produce its keys."""

    facts: tuple[Fact, ...]

    def __post_init__(self) -> None:
        if not self.facts:
            raise ConfigError("a fact graph needs at least one fact, got none: write e.g. 'a->b'")
        times = Counter(fact.value for fact in self.facts)
        doubled = sorted(value for value, count in times.items() if count > 1)
        if doubled:
            raise ConfigError(f"two facts lead to {doubled[0]!r}: give each value one fact")
        later = {fact.value for fact in self.facts}
        for fact in self.facts:
            if early := [key for key in fact.keys if key in later]:
                raise ConfigError(
                    f"the fact {fact} needs {early[0]!r} before a fact leads to it: put that first"
                )
            later.discard(fact.value)

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The symbols a question starts from: keys that no fact produces."""
        values = {fact.value for fact in self.facts}
        keys = (key for fact in self.facts for key in fact.keys)
        return tuple(dict.fromkeys(key for key in keys if key not in values))

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """All symbols of the chain, the known ones first."""
        return self.known + tuple(fact.value for fact in self.facts)

    @cached_property
    def hops(self) -> tuple[int, ...]:
        """For each fact, the length of the longest sequence of look-ups that ends with it."""
        depth = dict.fromkeys(self.known, 0)
        for fact in self.facts:
            depth[fact.value] = 1 + max(depth[key] for key in fact.keys)
        return tuple(depth[fact.value] for fact in self.facts)

    @cached_property
    def asked(self) -> dict[str, int]:
        """For each symbol, the number (from 1) of the fact or hop that asks for it."""
        return {fact.value: number for number, fact in enumerate(self.facts, 1)}

    @cached_property
    def roles(self) -> tuple["Role", ...]:
        """Every role of this graph: keys and value of each fact, then the queries."""
        of_facts = (role for number, _ in enumerate(self.facts) for role in self.roles_of(number))
        return (*of_facts, *self.query_roles)

    @cached_property
    def query_roles(self) -> tuple["Role", ...]:
        """The roles of the question: one for each known symbol."""
        return tuple(Role("query", number) for number, _ in enumerate(self.known))

    def roles_of(self, number: int) -> tuple["Role", ...]:
        """The roles of one fact: its keys, then its value."""
        keys = tuple(Role("key", number, slot) for slot, _ in enumerate(self.facts[number].keys))
        return (*keys, Role("value", number))


ROLE = re.compile(r"([^\W\d_](?:[\w '-]*[^\W\d_])?(?:[_-]?\d+)?)(?: (\d+)(?:\.(\d+))?)?")
"""A role as text: a name of letters and digits (spaces and hyphens inside), the number of its fact,
and the number of its slot."""
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
NUMBERED = ("key", "value", "decoy key", "decoy value")
"""Kinds of role that are always printed with their number."""

JOINED = re.compile(rf"({'|'.join(NUMBERED)}|query)[_-]?(?=\d[\d.]*$)")
"""Matches the kind at the start of a role whose number is joined to it, such as "key0"."""

RoleKind = Literal["key", "value", "query", "decoy key", "decoy value", "answer", "other"]
"""The kinds of role that hopscope's tasks use; a user's task may name others."""


@dataclass(frozen=True, order=True)
class Role:
    """What a position stands for.

    `fact` is the number of the fact in its graph (in a linear chain: the hop, counted from 0); for
    a query, it is the number of the known symbol. The role "answer" is the position at which a
    language model gives the answer. `slot` distinguishes the keys of one fact. `kind` is one of
    `RoleKind`, or another name that a user's task gives.
    """

    kind: str
    fact: int = 0
    slot: int = 0

    def __post_init__(self) -> None:
        match = ROLE.fullmatch(self.kind)
        if match is None or match[2] is not None or _misnamed(self.kind):
            raise ConfigError(
                f"a role cannot be called {self.kind!r}: a name has letters, digits, and spaces "
                "or hyphens inside; its number is given beside it"
            )

    def __str__(self) -> str:
        if self.kind not in NUMBERED and self.fact == 0 and self.slot == 0:
            return self.kind
        slot = f".{self.slot}" if self.slot else ""
        return f"{self.kind} {self.fact}{slot}"


def parse_role(text: str) -> Role:
    """The role with this text: the inverse of `str(role)`.

    >>> parse_role("key 2.1")
    Role(kind='key', fact=2, slot=1)
    """
    match = ROLE.fullmatch(text)
    unnumbered = match is not None and match[2] is None and match[1] in NUMBERED
    if match is None or unnumbered or _misnamed(match[1]):
        meant = f"{text} 0" if unnumbered else JOINED.sub(r"\1 ", text)
        hint = f"did you mean {meant!r}?" if meant != text else ""
        raise ConfigError(
            f"there is no role {text!r}: {hint or 'roles are query, key 0, value 0, key 2.1, …'}"
        )
    return Role(match[1], int(match[2] or 0), int(match[3] or 0))


def number_of(role: Role | str, known: Sequence[Role]) -> int:
    """The index of a role (or of the role with this name) in `known`; raises CircuitError if it is
    not there.
    """
    wanted = parse_role(role) if isinstance(role, str) else role
    if wanted not in known:
        names = ", ".join(map(str, known))
        raise CircuitError(f"there is no role {str(wanted)!r} here; the roles are {names}")
    return known.index(wanted)


def _misnamed(kind: str) -> bool:
    """True for a kind that could be mistaken for a numbered role ("key0") or for one of the
    numbered kinds ("value x").
    """
    joined = JOINED.match(kind) is not None
    return joined or any(kind.startswith(f"{numbered} ") for numbered in NUMBERED)


@cache
def chain_of_facts(hops: int) -> FactGraph:
    """The facts of a linear chain for retrieval: x0→x1, x1→x2, …

    >>> [str(fact) for fact in chain_of_facts(2).facts]
    ['x0->x1', 'x1->x2']
    """
    if hops < 1:
        raise ConfigError(f"hops is {hops}; a chain has at least 1 hop")
    return FactGraph(tuple(Fact((f"x{hop}",), f"x{hop + 1}") for hop in range(hops)))


def parse_facts(texts: Iterable[str]) -> FactGraph:
    """A fact graph from lines like `"x,y->z"`, each fact after those that produce its keys.

    >>> parse_facts(["x,y->z", "a->x", "a->y"]).hops
    (1, 1, 2)
    """
    waiting = [_parse_fact(text) for text in texts]
    values = {fact.value for fact in waiting}
    done: set[str] = set()
    ordered: list[Fact] = []
    while waiting:
        ready = [fact for fact in waiting if all(k in done or k not in values for k in fact.keys)]
        if not ready:
            cycle = ", ".join(map(str, waiting))
            raise ConfigError(
                f"the facts {cycle} need each other: a question could never be answered"
            )
        ordered += ready
        done |= {fact.value for fact in ready}
        waiting = [fact for fact in waiting if fact not in ready]
    return FactGraph(tuple(ordered))


def _parse_fact(text: str) -> Fact:
    left, arrow, right = text.partition("->")
    keys = tuple(key.strip() for key in left.split(","))
    value = right.strip()
    if not arrow or not value or not all(keys) or "," in value or "->" in value:
        raise ConfigError(f"cannot read the fact {text!r}: write keys and one value as 'x,y->z'")
    if len(set(keys)) < len(keys):
        raise ConfigError(f"the fact {text!r} names a key twice: each key once")
    return Fact(keys, value)


def symbol_name(name: str) -> str:
    """The symbol of a chain with its number as a subscript; other names unchanged.

    >>> symbol_name("x12"), symbol_name("a")
    ('x₁₂', 'a')
    """
    numbered = name[0] == "x" and name[1:].isdecimal()
    return name.translate(SUBSCRIPTS) if numbered else name
