"""Chen, Sheen, Wang and Yang, *Unveiling Induction Heads* (NeurIPS 2024)."""
