"""The explorer: a page on which a trained model is looked at, switched and scrubbed."""
