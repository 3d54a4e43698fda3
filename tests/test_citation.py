"""The citation file says what version 1.2.0 of its format requires, and the version of hopscope."""

from pathlib import Path

import pytest

import hopscope

ROOT = Path(hopscope.__file__).parents[1]
REQUIRED = {"cff-version", "message", "title", "authors"}
TYPES = {"software", "dataset"}
PERSON = {"family-names", "given-names", "orcid", "affiliation", "email"}
ENTITY = {"name", "website", "email"}


def cited() -> dict[str, object]:
    yaml = pytest.importorskip("yaml")
    found: dict[str, object] = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    return found


def test_it_says_what_its_format_requires() -> None:
    found = cited()
    assert found.keys() >= REQUIRED
    assert found["cff-version"] == "1.2.0"
    assert found["type"] in TYPES
    works = [found, *found["references"]]  # type: ignore[misc]
    for work in works:
        assert work["title"]
        assert work["authors"]
        for author in work["authors"]:
            assert author.keys() <= PERSON or author.keys() <= ENTITY
            assert author.get("family-names") or author.get("name")


def test_it_is_of_this_version() -> None:
    found = cited()
    assert found["version"] == hopscope.__version__
    assert found["license"] == "Apache-2.0"
