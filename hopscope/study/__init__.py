"""Models with their tasks, and what is found in them; two runs compared."""

from hopscope.study.comparison import Comparison, compare
from hopscope.study.run import RunStudy, load, open_run
from hopscope.study.study import Study

__all__ = ["Comparison", "RunStudy", "Study", "compare", "load", "open_run"]
