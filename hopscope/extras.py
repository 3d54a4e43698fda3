"""The packages that each extra needs, and the pip commands that install them. hopscope itself is
not on a package index, so no command names it.
"""

from collections.abc import Collection, Iterable
from importlib.metadata import PackageNotFoundError, requires, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.requirements import Requirement


def needed(extra: str) -> "list[Requirement]":
    """The packages that an extra needs on this machine (empty name: that hopscope itself needs)."""
    from packaging.requirements import Requirement

    listed = [Requirement(line) for line in requires("hopscope") or []]
    return [need for need in listed if _is_of(need, extra)]


def _is_of(need: "Requirement", extra: str) -> bool:
    """True if the extra needs the package on this machine and hopscope itself does not."""
    if need.marker is None or need.marker.evaluate({"extra": ""}):
        return not extra
    return need.marker.evaluate({"extra": extra})


def lack(need: "Requirement") -> str:
    """Why a requirement is not met: the package is missing or too old; empty if it is met."""
    try:
        there = version(need.name)
    except PackageNotFoundError:
        return f"{need.name} is missing"
    fits = need.specifier.contains(there, prereleases=True)
    return "" if fits else f"{need.name} is {there}, expected {need.specifier}"


def install(needs: "Iterable[Requirement]") -> str:
    """The command that installs these packages."""
    quoted = (f"'{need.name}{need.specifier}'" for need in needs)
    return f"python -m pip install {' '.join(quoted)}"


def install_extra(extra: str, only: Collection[str] = ()) -> str:
    """The command that installs all packages of an extra, or only those named in `only`."""
    try:
        return install(need for need in needed(extra) if not only or need.name in only)
    except PackageNotFoundError:  # hopscope is imported from a clone without being installed
        return f"pip install '.[{extra}]' in the clone of hopscope"
