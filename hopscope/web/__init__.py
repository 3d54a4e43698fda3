"""The explorer: a web page to inspect a trained model, change its heads and follow its training."""
