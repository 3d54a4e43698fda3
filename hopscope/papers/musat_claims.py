"""What Musat (ICLR 2025) says, claim by claim."""

from hopscope.papers import musat_circuit_judges as circuits
from hopscope.papers import musat_emergence_judges as emergence
from hopscope.papers import musat_judges as judges
from hopscope.papers.claim import Claim

CLAIMS = (
    Claim(
        "musat/theorem-1", "D hops need at least log3(2D) layers.", "theorem 1, appendix B",
        "t ≥ log3(2D)", "the exact minimum under the theorem's assumptions is never below",
        ("musat/depth",), judges.bound,
    ),
    Claim(
        "musat/three-heads-suffice", "Three heads would be enough for D = 3.", "§8.2",
        "3", "a transformer with weights written by hand, error below 1e-6",
        ("musat/depth",), judges.enough,
    ),
    Claim(
        "musat/llm-solve", "Language models solve up to five hops almost perfectly.",
        "§4, figure 2", "almost 1", "accuracy by the paper's protocol, D = 1 … 5",
        ("musat/fig2",), judges.solve,
    ),
    Claim(
        "musat/llm-all-formulations", "They solve all five formulations.", "§4, figure 2",
        "above guessing on each", "lower end of the 95 % interval above guessing",
        ("musat/fig2",), judges.above_guessing,
    ),
    Claim(
        "musat/nonic-above-0.7", "Without curriculum no transformer learns, whatever its depth.",
        "§7.2", "100 % of 64 runs above 0.7", "final validation loss of every run",
        ("musat/fig4-nonic",), judges.never, only_full=True,
    ),
    Claim(
        "musat/ic-essential", "The implicit curriculum makes learning possible.", "§7.2, figure 4",
        "learned with, not without", "the lowest final loss below 0.5 with and above it without",
        ("musat/fig4-ic", "musat/fig4-nonic"), judges.essential, only_full=True,
    ),
    Claim(
        "musat/later-harder", "Later symbols of a chain are harder.", "§7.2, figure 4 right",
        "partial losses rise along the chain", "final partial losses in order, for every run",
        ("musat/fig4-ic",), judges.later_harder,
    ),
    Claim(
        "musat/later-deeper", "Later symbols of a chain need more layers.", "§7.2, figure 4 right",
        "deeper models learn more hops", "the fewest layers with a final loss below 0.5, by hop",
        ("musat/fig4-ic",), judges.more_layers,
    ),
    Claim(
        "musat/hops-in-order", "With curriculum every run learns x_1 first, then x_2, and so on.",
        "§7.2", "100 % of 64 runs", "training losses pass 0.5 in the order of the hops",
        ("musat/fig4-ic",), judges.in_order,
    ),
    Claim(
        "musat/hops-in-order-small", "The same, of ten small models of ours.", "§7.2",
        "100 % of runs", "training losses pass 0.5 in the order of the hops", ("musat/order",),
        judges.in_order,
    ),
    Claim(
        "musat/abc-below-0.01", "Transformers A, B and C end below 0.01.", "§8.2",
        "< 0.01", "validation loss, three seeds", ("musat/fig5",), circuits.accurate,
    ),
    Claim(
        "musat/abc-mostly-idle", "Most heads do nothing useful.", "§8.2",
        "8 of 12 idle", "heads that neither the circuit nor the model needs", ("musat/fig5",),
        circuits.mostly_idle,
    ),
    Claim(
        "musat/abc-four-heads", "A, B and C use four heads each.", "§8.2, figure 5",
        "4, 4, 4", "heads with a path in the circuit", ("musat/fig5",), circuits.four,
    ),
    Claim(
        "musat/abc-first-head", "The first useful head joins the two symbols of each pair.", "§8.2",
        "3 of 3", "attention of the first head that has a path", ("musat/fig5",),
        circuits.first_joins,
    ),
    Claim(
        "musat/abc-different", "But for the first head, circuits differ between seeds.", "§8.2",
        "3 different circuits", "what the other heads do", ("musat/fig5",), circuits.different,
    ),
    Claim(
        "musat/abc-circuit-loss", "The circuits alone keep the loss below 0.05.", "appendix E",
        "< 0.05", "all heads replaced by their mechanisms", ("musat/fig5",),
        circuits.explained(0.05),
    ),
    Claim(
        "musat/abc-single-removals", "Removing any one path costs much.", "appendix E",
        "0.17 … 0.89", "every path removed alone, first layers apart", ("musat/fig5",),
        circuits.removed,
    ),
    Claim(
        "musat/abc-first-layers", "Removing the first layer's paths costs little.", "appendix E",
        "0.05 … 0.1", "heads that join pairs, removed alone", ("musat/fig5",),
        circuits.first_layers,
    ),
    Claim(
        "musat/d-loss", "Transformer D ends at 0.031.", "§9.2",
        "0.031", "final validation loss, every reading", ("musat/fig7",),
        emergence.loss,
    ),
    Claim(
        "musat/d-circuit-loss", "Its circuit alone keeps the loss at 0.045.", "§9.2",
        "0.045", "all heads replaced by their mechanisms; at most twice the paper's value",
        ("musat/fig7",), emergence.circuit_loss,
    ),
    Claim(
        "musat/d-single-removals", "Removing any one path of it costs much.", "appendix E",
        "0.17 … 0.89", "every path removed alone, those that join pairs apart", ("musat/fig7",),
        emergence.removals,
    ),
    Claim(
        "musat/d-slow-start", "Its first head emerges after 450 slow epochs.", "§9.2",
        "epoch 450", "when x_1 passes 0.5; up to half of that earlier or later",
        ("musat/fig7",), emergence.slow_start,
    ),
    Claim(
        "musat/d-hops-in-order", "It learns one hop after the other, all four.",
        "§9.2, figure 6 right", "x_1, then x_2, x_3, x_4", "when x_1, x_2, … pass 0.5",
        ("musat/fig7",), emergence.hops_in_order,
    ),
    Claim(
        "musat/d-order", "Heads emerge one after the other, in the order of the hops.",
        "§9.2, figure 7 right", "B, then C, then D, then E",
        "when attention passes 0.5 along the first path that reaches x_1, x_2, …",
        ("musat/fig7",), emergence.heads_in_order,
    ),
    Claim(
        "musat/d-last-late", "The last hop comes much later than the one before.", "§9.2",
        "head 24 much later than 23", "steps between the hops' passing 0.5",
        ("musat/fig7",), emergence.last_late,
    ),
)  # fmt: skip
