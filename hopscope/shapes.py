"""Types for arrays with named axes in signatures, for modules that load without torch.

The names are jaxtyping's. Importing jaxtyping takes 0.1 s, since it loads asyncio; commands that
only print text should not wait for that. So the names are plain annotations here, unless jaxtyping
is loaded already, as in the tests, which check every shape.
"""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jaxtyping import Float, Float32, Float64, Int, Int32
else:
    from typing import Annotated

    Float = Float32 = Float64 = Int = Int32 = Annotated

__all__ = ["Float", "Float32", "Float64", "Int", "Int32"]
