"""Figures of runs, for files and for the terminal."""
