"""What is kept with the models of a run: their circuits, maps and stories."""

from hopscope.study.study import Study, load

__all__ = ["Study", "load"]
