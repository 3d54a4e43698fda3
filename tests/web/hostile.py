"""Texts that would be code, or end a literal, where they are written into a line unquoted."""

TEXTS = (
    "$(touch x)", "`touch x`", "x;touch y;", "a b", "it's", 'say "x"', '");import os#', "\\",
    "a\\", "${HOME}", "!!", "*", "~", "a\u2028b", "\u202eb", "é", "😀", "#x", "--help", "a\\nb",
)  # fmt: skip
KEYS = ("a\nb", "a\rb", "\x03touch x", "\x1b[200~", "\x00", "\x9b")
"""Control characters: in a terminal some of these are keys."""
