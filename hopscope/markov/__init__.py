"""Chen et al. (NeurIPS 2024): n-gram Markov chains, a two-attention-layer model, three stages."""
