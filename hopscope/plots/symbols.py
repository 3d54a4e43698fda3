"""Short texts for roles, symbols and numbers in figures and tables."""

from collections.abc import Iterable, Sequence
from json import dumps

from hopscope.facts import NUMBERED, Role

LETTERS = 9
"""Names of roles that are longer than this are shortened to initials."""


def short_role(role: Role) -> str:
    """Return a short name: k3 for key 3, v0 for value 0, q for the query.

    Other roles without a number keep their names, or have initials if the name is long.
    """
    if role.kind == "query":
        return "q" if role.fact == 0 else f"q{role.fact}"
    if _of_no_fact(role):
        return _initials(role.kind) if len(role.kind) > LETTERS else role.kind
    slot = f".{role.slot}" if role.slot else ""
    return f"{_initials(role.kind)}{role.fact}{slot}"


def chain_order(roles: Iterable[Role]) -> list[Role]:
    """Sort roles in the order of a chain: query, then keys and value of each fact, then decoys.

    Other roles come after ours of the same fact, in alphabetical order.

    >>> [short_role(r) for r in chain_order([Role("letter"), Role("value"), Role("key")])]
    ['k0', 'v0', 'letter']
    """
    ours = ("query", *NUMBERED)

    def place(role: Role) -> tuple[bool, bool, int, int, str, int]:
        number = ours.index(role.kind) if role.kind in ours else len(ours)
        decoy = role.kind.startswith("decoy")
        return role.kind != "query", decoy, role.fact, number, role.kind, role.slot

    return sorted(roles, key=place)


def role_legend(roles: Sequence[Role]) -> str:
    """Return a text that explains the short names of these roles.

    >>> role_legend([Role("query"), Role("key", 1), Role("value", 1)])
    'Roles: q query; k, v key, value of the fact with this number.'
    >>> role_legend([Role("command"), Role("first letter")])
    'Roles: fl first letter.'
    """
    shortened = [role for role in roles if short_role(role) != role.kind]
    alone = [role for role in shortened if role.kind == "query" or _of_no_fact(role)]
    lines = [f"{_initials(role.kind)} {role.kind}" for role in alone]
    numbered = dict.fromkeys(role.kind for role in shortened if role not in alone)
    if numbered:
        letters = ", ".join(map(_initials, numbered))
        lines.append(f"{letters} {', '.join(numbered)} of the fact with this number")
    return f"Roles: {'; '.join(dict.fromkeys(lines))}." if lines else ""


def _of_no_fact(role: Role) -> bool:
    """Return whether it is a user-defined role without a number."""
    return role.kind not in NUMBERED and role.kind != "query" and not (role.fact or role.slot)


def _initials(kind: str) -> str:
    return "".join(word[0] for word in kind.split())


def seed_text(seeds: tuple[int, ...]) -> str:
    """Return one seed as its number, several as their count."""
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"


def counted(number: int, thing: str) -> str:
    """Return a number of things, with a plural s.

    >>> counted(1, "layer"), counted(12, "layer")
    ('1 layer', '12 layers')
    """
    return f"{number:,} {thing}{'s' * (number != 1)}"


def when_text(reached: Sequence[int | None]) -> str:
    """Return the first and last step at which models learned something, and how many never did."""
    times = [step for step in reached if step is not None]
    if not times:
        return "never"
    span = f"{min(times):,}" if min(times) == max(times) else f"{min(times):,} … {max(times):,}"
    never = len(reached) - len(times)
    return f"{span} ({never} of {len(reached)} never)" if never else span


def setting_text(value: object) -> str:
    """Return a recipe's value as table text: "-" for None, JSON for lists."""
    if isinstance(value, list | dict):
        return dumps(value)
    return "-" if value is None else str(value)
