"""What the numbers of a circuit say: whether it explains its model, and what it lacks.

| verdict              | if                                                                        |
| Nothing found        | the circuit has no component                                              |
| Not faithful         | there are warnings: it is better than its model, or answers differently   |
| Not explained        | it does not recover enough                                                |
| Found, not explained | half of its rows or more have no name, or a needed row is as in the model |
| Partly explained     | something is lacking                                                      |
| Explained            | otherwise                                                                 |
"""

from collections.abc import Iterator
from statistics import fmean
from typing import TYPE_CHECKING

from hopscope.circuits.components import Component, HeadAlone

if TYPE_CHECKING:
    from hopscope.circuits.circuit import Circuit

SLACK = 0.005
"""A circuit counts as better than its model if it recovers more than 1 plus this."""
MOST_NAMED = 0.5
"""A circuit can only be explained if rules describe more than this share of its rows."""
OTHER_RESTS = (("prescribed", "mean"), ("prescribed", "resample"), ("computed", "mean"))
"""The ways to run a circuit in which it has to recover enough, too. (With computed attention and
the rest from another example, queries and keys would mix symbols of two examples.)"""


def judged(circuit: "Circuit") -> str:
    """The verdict in a word or two."""
    rows, every = circuit.named_rows
    if not circuit.components:
        return "Nothing found"
    if circuit.warnings:
        return "Not faithful"
    if not circuit.sufficient:
        return "Not explained"
    if rows <= MOST_NAMED * every or _left(circuit):
        return "Found, not explained"
    return "Partly explained" if circuit.lacks else "Explained"


def warnings_of(circuit: "Circuit") -> Iterator[str]:
    """Reasons to doubt the circuit, one line each."""
    for score in circuit.scores:
        if score.rest != "even":
            continue
        shares, likeness = score.recovered, score.likeness
        if shares and shares.low > 1 + SLACK:
            yield (
                f"{score.attention} attention, rest {score.rest}: the circuit is better than its "
                f"model ({shares.mean:z.1%} recovered, at least {shares.low:z.1%})"
            )
        learned = fmean(circuit.losses.known)  # answers of other hops are guesses
        differ = likeness is not None and likeness.high < circuit.enough * learned
        if differ and shares and shares.mean >= circuit.enough:
            same = "share of equal answers:" if score.same_answer else "R²:"
            yield (
                f"{score.attention} attention, rest {score.rest}: the loss is recovered, but not "
                f"the model's own answers ({same} {likeness})"
            )
    for each in circuit.components:
        if _is_the_models_own(each):
            continue
        for source in each.sources:
            if source.times > 2 ** max(0, each.layer - 1):
                yield (
                    f"{each.name} looks at {source}, which by the law of depth no position can "
                    f"have found by layer {each.layer}: the relation itself gives it away"
                )


def _is_the_models_own(component: Component) -> bool:
    """True if the model itself looks where the rule says, in nearly all rows. Then the place can be
    found, whatever the law of depth says: it asks for a match of symbols, and a token may also name
    its place. A mixture may hold by another of its sources.
    """
    if component.holds is None or component.only_enough:
        return False
    return all(len(each.parts) == 1 for each in component.target.each)


def lacks_of(circuit: "Circuit") -> Iterator[str]:
    """Reasons why a sufficient circuit is only part of the explanation, one line each."""
    yield from _attention_lacks(circuit)
    yield from _rows_lack(circuit)
    if circuit.found:
        yield from _heads_lack(circuit)
    if circuit.flow:
        yield from _paths_lack(circuit)


def _attention_lacks(circuit: "Circuit") -> Iterator[str]:
    """What is not recovered with computed attention, or if the rest is ablated in another way; and
    what is known with everything ablated.
    """
    losses, enough = circuit.losses, circuit.enough
    if losses.computed is not None and not circuit.self_contained:
        yield (
            f"computed attention recovers less than {enough:.0%}: the heads need other attention "
            "to find where to look"
        )
    for score in circuit.scores:
        asked = (score.attention, score.rest) in OTHER_RESTS
        if asked and score.recovered and score.recovered.high < enough:
            yield (
                f"{score.attention} attention, rest {score.rest}: {score.recovered.mean:z.1%} "
                "recovered, so what other heads bring matters"
            )
    if losses.known_ablated is not None and losses.known_ablated > 1 - enough:
        yield (
            f"with everything ablated, {losses.known_ablated:.0%} of the answers are right beyond "
            "chance: they need none of these rows"
        )
    elif circuit.found and losses.mean("ablated") < enough * losses.chance:
        yield (
            f"with everything ablated the loss is {losses.mean('ablated'):.3f}, below chance "
            f"({losses.chance:.3f}): a part of the answers needs none of these rows"
        )


def _rows_lack(circuit: "Circuit") -> Iterator[str]:
    """Needed rows without a rule, with a rule that is only enough, or whose work is given away."""
    for each in _left(circuit):
        yield f"{each.name} is needed, and left as in the model: no rule describes where it looks"
    for each in _needed(circuit):
        if each.holds and each.only_enough:
            yield (
                f"{each.name} {each.target} is needed, and holds in only {each.holds.mean:.0%} of "
                "its rows: elsewhere the model does something else that has the same effect"
            )
    for each in circuit.components:
        if each.gained and each.gained.low > _least(circuit) and each.holds and each.only_enough:
            yield (
                f"{each.name} {each.target} holds in only {each.holds.mean:.0%} of its rows; it is "
                f"weak, but with it alone of all weak components {each.gained.mean:.0%} is gained"
            )
    for each in _given_away(circuit):
        yield (
            f"{each.name} {each.target} is needed only with computed attention, though no layer "
            "follows: the attention prescribed to other rows gives its work away"
        )


def _heads_lack(circuit: "Circuit") -> Iterator[str]:
    """Heads that the model needs and the circuit leaves out, and heads that bring next to nothing
    to a component of which another head is needed.
    """
    least = _least(circuit)
    used = {at for each in circuit.components for at in each.at}
    told = set()
    for each in circuit.left_out:
        if each.lost.low > least and each.head not in told:
            told.add(each.head)
            rows = f"{'the other rows of ' if each.head in used else ''}{_name(each)}"
            how = {
                "ablated": f"without {rows} alone",
                "mean": f"with what {rows} alone bring on average",
                "resample": f"with what {rows} alone brings in another example",
            }
            yield (
                f"{how[each.instead]}, which the circuit leaves out, the model loses "
                f"{each.lost.mean:.0%} of the gap: so the circuit does something else"
            )
    for component in _needed(circuit):
        if any(each.lost.low > least for each in component.sharing):
            yield from (
                f"{_name(each)} shares a component, and brings less than {least:.0%} of the gap: "
                f"{each.lost.mean:z.0%} is lost without it, and {each.gained.mean:z.0%} gained "
                "with it alone of these heads"
                for each in component.sharing
                if each.gained and max(each.lost.high, each.gained.high) < least
            )


def _paths_lack(circuit: "Circuit") -> Iterator[str]:
    """Answers that no named path brings, and paths whose two ends share no symbol."""
    flow = circuit.flow
    assert flow is not None
    if flow.missed:
        yield str(flow)
    for path in flow.jumps:
        yield (
            f"{path}: by its other paths the two share no symbol yet, so the head must find its "
            "source in another way"
        )


def _needed(circuit: "Circuit") -> list[Component]:
    return [each for each in circuit.components if each.kind in ("moves", "routes")]


def _left(circuit: "Circuit") -> list[Component]:
    """Needed components of a circuit that was found whose rows are left as in the model."""
    if not circuit.found:
        return []
    return [each for each in _needed(circuit) if each.written == "model"]


def _given_away(circuit: "Circuit") -> list[Component]:
    """Components that route, though in the last layer no head follows for which they could."""
    last = [e for e in _needed(circuit) if e.layer == circuit.layers - 1 and e.kind == "routes"]
    return [each for each in last if each.lost and each.lost.high < _least(circuit)]


def _least(circuit: "Circuit") -> float:
    """The share of the gap above which something is needed."""
    return circuit.found.settings.needed if circuit.found else 0.0


def _name(alone: HeadAlone) -> str:
    layer, head = alone.head
    return f"{layer}.{head}"
