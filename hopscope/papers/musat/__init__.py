"""Musat, *Mechanism and Emergence of Stacked Attention Heads* (ICLR 2025)."""
