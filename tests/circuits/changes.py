"""One change of a head of every kind."""

from hopscope.circuits import Carried, Mechanism, aim
from hopscope.circuits.ablation import Change
from hopscope.circuits.mechanism import BY_POSITION, ITSELF, PREVIOUS, UNIFORM
from hopscope.facts import Role

CHANGES: list[Change] = [
    Mechanism(rest=UNIFORM),
    Mechanism(rest=ITSELF),
    Mechanism(rest=PREVIOUS),
    Mechanism(rest=BY_POSITION),
    Mechanism(((Role("query"), aim("own", Role("value"))),)),
    Carried("mean"),
    Carried("resample"),
]
