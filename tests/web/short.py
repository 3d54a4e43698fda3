"""A training of two models, which takes a second."""

from stopping import TINY

FLEET = TINY.replace(seeds=(4, 9))
ID = FLEET.run_name().rpartition("-")[2]
"""Its id on the page."""
