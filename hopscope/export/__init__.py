"""Runs go to trackers, to transformers and to a hub."""
