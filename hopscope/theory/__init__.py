"""How deep a transformer must be: exact answers under the paper's two assumptions; no torch here.

1. A position can attend to another only if both already have a piece of information in common.
2. It then receives all information that the other has.
"""

from hopscope.theory.chain import Depths, depths, reach, simulated_depth
from hopscope.theory.flow import Flow, Followed, Path, Reading, flow, follow
from hopscope.theory.window import known_hops

__all__ = [
    "Depths",
    "Flow",
    "Followed",
    "Path",
    "Reading",
    "depths",
    "flow",
    "follow",
    "known_hops",
    "reach",
    "simulated_depth",
]
