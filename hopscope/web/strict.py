"""JSON as a browser writes it, and nothing else: one meaning, little depth, finite numbers."""

import json
import re
from typing import Any, Never

from hopscope.web.policy import Refused

DEPTH = 16
TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)
"""A text, or all that follows a quote which nothing ends: so that no byte is read twice."""
BRACKET = re.compile(rb"[][{}]")


def read_json(data: bytes) -> dict[str, Any]:
    """The object that this text is."""
    depth = 0
    for bracket in BRACKET.findall(TEXT.sub(b"", data)):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEPTH:
            raise _refused(f"JSON of at most {DEPTH} levels")
    try:
        found = json.loads(data.decode(), object_pairs_hook=_once, parse_constant=_none)
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()  # surrogates, 1e999
    except (ValueError, RecursionError):
        raise _refused("JSON in UTF-8, of finite numbers") from None
    if not isinstance(found, dict):
        raise _refused("a JSON object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise _refused("JSON that names each field once")
    return found


def _none(_: str) -> Never:
    raise ValueError("not a number")


def _refused(expected: str) -> Refused:
    return Refused(400, f"the request cannot be read: expected {expected}")
