"""Join the page's modules into one classic script, because browsers load no modules from files.

Every module becomes a function that is called once, after the modules that it imports. Only the
forms that our modules use are supported; any other form is an error:

    import { a, b } from "./x.js";      import "./x.js";
    export function f …                 export async function f …    export function* f …
    export class C …                    export const c …
"""

import re
from collections.abc import Callable

from hopscope.errors import HopscopeError

IMPORT = re.compile(r'import (?:\{ ([\w$, ]+) \} from )?"\./([\w-]+\.js)";')
EXPORT = re.compile(r"export ((?:async )?function\*? |class |const )([\w$]+)")
KEYWORD = re.compile(r"^\s*(?:import|export)\b|\bimport\s*\(|\bimport\.meta\b", re.MULTILINE)
NAMES = re.compile(r"[\w$]+(?:, [\w$]+)*")
CLOSING = re.compile(r"</script|<!--", re.IGNORECASE)


class ModuleUnreadable(HopscopeError):
    """A module of the page has an unsupported form."""


def joined_script(entry: str, read: Callable[[str], str], name: str = "") -> str:
    """Return a script that runs the module `entry`; `read` returns a module's text by name.

    With `name`, the script only defines a global function of that name, which runs the module and
    returns its exports. Its source text is self-contained, so it can start a worker.
    """
    done: dict[str, str] = {}
    _join(entry, read, done, ())
    body = "\n".join(done.values())
    body = f'() => {{\n"use strict";\nconst modules = {{}};\n{body}\nreturn modules[{entry!r}];\n}}'
    script = f"globalThis.{name} = {body};\n" if name else f"({body})();\n"
    if found := CLOSING.search(script):
        raise ModuleUnreadable(
            f"the page's script holds {found[0]!r}, which would end it inside a page: write it in "
            "two parts"
        )
    return script


def _join(
    name: str, read: Callable[[str], str], done: dict[str, str], open_: tuple[str, ...]
) -> None:
    """Append a module to `done`, after the modules that it imports."""
    if name in done:
        return
    if name in open_:
        raise ModuleUnreadable(f"modules import one another: {' → '.join((*open_, name))}")
    lines, exported = [], list[str]()
    for number, line in enumerate(read(name).splitlines(), 1):
        if match := IMPORT.fullmatch(line):
            _join(match[2], read, done, (*open_, name))
            lines.append(_imported(match))
        elif match := EXPORT.match(line):
            exported.append(match[2])
            lines.append(line.removeprefix("export "))
        elif KEYWORD.search(line) and not line.lstrip().startswith(("//", "*", "/*")):
            raise ModuleUnreadable(f"{name}, line {number}: {line.strip()[:80]!r} is not joined")
        else:
            lines.append(line)
    body = "\n".join(lines)
    done[name] = (
        f"modules[{name!r}] = (() => {{\n{body}\nreturn {{ {', '.join(exported)} }};\n}})();"
    )


def _imported(match: re.Match[str]) -> str:
    if match[1] is None:
        return ""
    if not NAMES.fullmatch(match[1]):
        raise ModuleUnreadable(f"{match[0]!r} renames what it imports, which is not joined")
    return f"const {{ {match[1]} }} = modules[{match[2]!r}];"
