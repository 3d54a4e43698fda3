"""What is trained leaves the house: to trackers, to transformers, to a hub of models."""
