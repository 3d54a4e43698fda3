"""Many runs, one after the other, stopped and resumed at any time."""

from hopscope.sweep.carry import Outcome, carry_out

__all__ = ["Outcome", "carry_out"]
