"""What is kept with the models of a run: their circuits, maps and stories; two runs compared."""

from hopscope.study.comparison import Comparison, compare
from hopscope.study.study import Study, load

__all__ = ["Comparison", "Study", "compare", "load"]
