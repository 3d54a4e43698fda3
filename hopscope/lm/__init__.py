"""Large language models on questions in words."""
