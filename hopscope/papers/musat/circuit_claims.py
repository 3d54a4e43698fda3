"""What Musat (ICLR 2025) says of the circuits of transformers A, B and C, and how it is judged."""

from dataclasses import replace

from hopscope.papers.claim import Claim
from hopscope.papers.musat.circuit_judges import (
    accurate,
    circuit_losses,
    different,
    first_joins,
    first_layers,
    four,
    mostly_idle,
    not_the_fewest,
    removed,
)
from hopscope.papers.musat.reading_map import under_readings

AS_WE_TAKE_IT = (
    Claim(
        "musat/abc-below-0.01", "Transformers A, B and C end below 0.01.", "§8.2",
        "< 0.01", "validation loss, three seeds", ("musat/fig5",), accurate,
    ),
    Claim(
        "musat/abc-mostly-idle", "Most heads do nothing useful.", "§8.2",
        "8 of 12 idle", "heads without a row in the circuit", ("musat/fig5",),
        mostly_idle,
    ),
    Claim(
        "musat/abc-four-heads", "A, B and C use four heads each.", "§8.2, figure 5",
        "4, 4, 4", "heads with a path in the circuit", ("musat/fig5",), four,
    ),
    Claim(
        "musat/abc-not-the-fewest", "None of A, B and C uses the fewest heads possible.", "§8.2",
        "4 heads each where 3 are enough", "heads of the circuit", ("musat/fig5",),
        not_the_fewest,
    ),
    Claim(
        "musat/abc-first-head", "The first useful head joins the two symbols of each pair.", "§8.2",
        "3 of 3", "attention of the first head that has a path", ("musat/fig5",),
        first_joins,
    ),
    Claim(
        "musat/abc-different", "But for the first head, circuits differ between seeds.", "§8.2",
        "3 different circuits", "what the other heads do", ("musat/fig5",), different,
    ),
    Claim(
        "musat/abc-circuit-loss", "The circuits alone keep the loss below 0.05.", "appendix E",
        "< 0.05", "circuit with prescribed attention", ("musat/fig5",),
        circuit_losses,
    ),
    Claim(
        "musat/abc-single-removals", "Removing any one path costs much.", "appendix E",
        "0.17 … 0.89", "every path removed alone, those of the first head apart",
        ("musat/fig5",), removed,
    ),
    Claim(
        "musat/abc-first-layers", "Removing the first layer's paths costs little.", "appendix E",
        "0.05 … 0.1", "the first head with a path, removed whole", ("musat/fig5",), first_layers,
    ),
)  # fmt: skip
"""Judged under what we take the paper to mean alone."""

CLAIMS = tuple(
    replace(
        claim,
        judge=under_readings(claim.judge),
        beside=("musat/readings-long", "musat/readings"),
    )
    for claim in AS_WE_TAKE_IT
)
