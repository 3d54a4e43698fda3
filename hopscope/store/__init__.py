"""Runs on disk, written atomically, queried as tables; no torch here."""

from hopscope.store.folder import RunFolder
from hopscope.store.query import Answer, sql
from hopscope.store.store import Store, default_root

__all__ = ["Answer", "RunFolder", "Store", "default_root", "sql"]
