"""Modules become one script; a form that is not read is an error, and nothing is guessed."""

import pytest

from hopscope.web.joined import ModuleUnreadable, joined_script

MODULES = {
    "a.js": 'import { one, Two } from "./b.js";\nimport "./c.js";\nexport const three = one + 1;\n',
    "b.js": 'import "./c.js";\nexport const one = 1;\nexport class Two {}\nconst own = 5;',
    "c.js": "// import { x } from nowhere\nexport async function* f() {}\nexport function $g() {}",
}


def test_every_module_once_and_after_what_it_imports() -> None:
    script = joined_script("a.js", MODULES.__getitem__)
    places = [script.index(f"modules['{name}'] =") for name in ("c.js", "b.js", "a.js")]
    assert places == sorted(places)
    assert script.count("modules['c.js'] =") == 1
    assert "const { one, Two } = modules['b.js'];" in script
    assert "return { one, Two };" in script
    assert "return { f, $g };" in script
    assert "own }" not in script


REFUSED = {
    'import x from "./b.js";': "a.js, line 1",
    'import { one as two } from "./b.js";': "renames what it imports",
    'import { one } from "elsewhere";': "a.js, line 1",
    "export default 1;": "a.js, line 1",
    "export let x = 1;": "a.js, line 1",
    'export * from "./b.js";': "a.js, line 1",
    'const x = await import("./b.js");': "a.js, line 1",
    "const here = import.meta.url;": "a.js, line 1",
    'const x = "</script>";': "'</script', which would end it",
    'const x = "<!--";': "'<!--', which would end it",
    'import "./d.js";': "modules import one another: a.js → d.js → a.js",
}


def test_other_forms_are_refused() -> None:
    for line, said in REFUSED.items():
        modules = {**MODULES, "a.js": line, "d.js": 'import "./a.js";'}
        with pytest.raises(ModuleUnreadable) as caught:
            joined_script("a.js", modules.__getitem__)
        assert said in str(caught.value), line
