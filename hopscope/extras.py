"""What the extras of the package need, and the commands that install it: hopscope is on no package
index, so none of them names hopscope.
"""

from collections.abc import Collection, Iterable
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement


def needed(extra: str) -> list[Requirement]:
    """Packages that an extra (empty: hopscope itself) needs on this machine."""
    listed = [Requirement(line) for line in requires("hopscope") or []]
    return [need for need in listed if _is_of(need, extra)]


def _is_of(need: Requirement, extra: str) -> bool:
    """Does this machine need it for the extra, and not already for hopscope itself?"""
    if need.marker is None or need.marker.evaluate({"extra": ""}):
        return not extra
    return need.marker.evaluate({"extra": extra})


def lack(need: Requirement) -> str:
    """What is wrong with one package, or nothing."""
    try:
        there = version(need.name)
    except PackageNotFoundError:
        return f"{need.name} is missing"
    fits = need.specifier.contains(there, prereleases=True)
    return "" if fits else f"{need.name} is {there}, expected {need.specifier}"


def install(needs: Iterable[Requirement]) -> str:
    """The command that installs these packages."""
    quoted = (f"'{need.name}{need.specifier}'" for need in needs)
    return f"python -m pip install {' '.join(quoted)}"


def install_extra(extra: str, only: Collection[str] = ()) -> str:
    """The command that installs what an extra needs, or only these packages of it."""
    try:
        return install(need for need in needed(extra) if not only or need.name in only)
    except PackageNotFoundError:  # hopscope is imported from a clone, and not installed
        return f"pip install '.[{extra}]' in the clone of hopscope"
