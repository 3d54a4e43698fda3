"""Export runs to trackers, to transformers and to a hub."""
