"""Runs on disk, written atomically and queried as tables, without torch."""

from hopscope.store.folder import RunFolder, default_root
from hopscope.store.listing import Listed
from hopscope.store.query import Answer, SqlQuery
from hopscope.store.store import Store

__all__ = ["Answer", "Listed", "RunFolder", "SqlQuery", "Store", "default_root"]
