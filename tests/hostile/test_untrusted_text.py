"""Untrusted text never reaches an interpreter: what could let it, by the shape of our own code, with reasons.

Reads the syntax trees of ``src`` and ``cluster`` and the scripts and templates beside them. What is found must be
in ``ALLOWED``, and what is in ``ALLOWED`` must be found, so that the list cannot outlive its reasons.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "cluster")

ALLOWED = {
    ("cluster/recipe/yaml_file.py", "yaml.load"): "with loaders that derive from SafeLoader and CSafeLoader",
    ("cluster/boundary.py", ".format"): "logging's own layout of a line, which it then makes printable",
    ("src/analysis/charts.py", "Markup"): "the drawing library's own SVG, whose texts it escapes; the label is escaped",
    ("src/environments/browser/tab.py", ".format"): "the two forms of a call into the page; what goes in is JSON",
    (
        "src/policy/chat_rendering.py",
        "from_string",
    ): "a model's chat template, in Jinja's sandbox, in a process that has little time and memory and no secrets",
    ("src/sites/code/generation.py", ".format"): "phrases of the generated data, written by us",
    ("src/sites/forum/data.py", ".format"): "phrases of the generated data, written by us",
    ("src/sites/forms.py", ".format"): "the name of a page's template, written by us; its route limits what goes in",
    ("src/sites/tasks.py", ".format"): "the intent of a template of the embedded sites, written by us",
    ("src/sites/chains/atom.py", ".format"): "an atom's wordings, written by us",
    ("src/sites/chains/chain.py", ".format"): "how the instructions of a chain are joined, written by us",
    (
        "src/plugs/registry.py",
        "import_module",
    ): "the recipe names the environment; recipes are trusted",
}
"""Where something that could interpret text stands, and why no untrusted text gets there."""

CALLS = {
    "eval", "exec", "compile", "__import__", "import_module", "Markup", "from_string", "Template", "literal_eval",
    "os.system", "os.popen", "yaml.load", "yaml.unsafe_load", "yaml.full_load", "torch.load", "builtins.eval",
}  # fmt: skip
MODULES = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "pty", "xmlrpc"}
FLAGS = {"shell": True, "allow_pickle": True, "trust_remote_code": True, "weights_only": False, "autoescape": False}
"""Keyword arguments that let text or files take over, by the value that does."""


def dotted(node: ast.expr) -> str:
    """The name that is called: ``eval``, ``yaml.load``; of a longer chain the last two parts."""
    if isinstance(node, ast.Attribute):
        return f"{node.value.id}.{node.attr}" if isinstance(node.value, ast.Name) else f".{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def is_constant_text(node: ast.expr) -> bool:
    """Whether a text is one of the code itself: a literal, a constant by name, or an entry of one."""
    if isinstance(node, ast.Subscript):
        return is_constant_text(node.value)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id.isupper())


def findings(tree: ast.AST) -> Iterator[str]:
    """What in a module could interpret text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = dotted(node.func)
            method = name.rpartition(".")[2]
            is_method_of_text = name.startswith(".") or "." in name
            if name in CALLS or (is_method_of_text and method in {"from_string", "Markup", "import_module"}):
                yield name if name in CALLS else method
            formats = isinstance(node.func, ast.Attribute) and method in {"format", "format_map"}
            if formats and not is_constant_text(node.func.value):
                yield ".format"
            for keyword in node.keywords:
                if keyword.arg in FLAGS and not isinstance(keyword.value, ast.Constant):
                    yield f"{keyword.arg}=?"
                elif keyword.arg in FLAGS and keyword.value.value is FLAGS[keyword.arg]:
                    yield f"{keyword.arg}={FLAGS[keyword.arg]}"
            if name in {"Environment", "jinja2.Environment"} and "autoescape" not in {k.arg for k in node.keywords}:
                yield "Environment without autoescape"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            looks_like_text = isinstance(node.right, ast.Tuple | ast.Dict) or isinstance(node.left, ast.JoinedStr)
            if looks_like_text and not is_constant_text(node.left):
                yield "%"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            yield from (f"import {name}" for name in names if name.partition(".")[0] in MODULES)


def found_in(folders: tuple[str, ...]) -> set[tuple[str, str]]:
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(files) > 100
    return {
        (path.relative_to(ROOT).as_posix(), what)
        for path in files
        for what in findings(ast.parse(path.read_text(encoding="utf-8")))
    }


def test_nothing_interprets_text_but_what_is_allowed() -> None:
    assert found_in(FOLDERS) == set(ALLOWED)


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("eval(x)", "eval"),
        ("exec(x)", "exec"),
        ("import pickle", "import pickle"),
        ("from pickle import loads", "import pickle"),
        ("torch.load(p)", "torch.load"),
        ("yaml.load(t, Loader=L)", "yaml.load"),
        ("subprocess.run(c, shell=True)", "shell=True"),
        ("subprocess.run(c, shell=s)", "shell=?"),
        ("np.load(p, allow_pickle=True)", "allow_pickle=True"),
        ("text.format(a=1)", ".format"),
        ("self.text.format(a=1)", ".format"),
        ("text % (a, b)", "%"),
        ("Markup(text)", "Markup"),
        ("markupsafe.Markup(text)", "Markup"),
        ("Environment(loader=l)", "Environment without autoescape"),
        ("Environment(loader=l, autoescape=False)", "autoescape=False"),
        ("environment.from_string(text)", "from_string"),
        ("os.system(c)", "os.system"),
    ],
)
def test_the_search_finds_what_it_is_for(code: str, what: str) -> None:
    assert list(findings(ast.parse(code))) == [what]


@pytest.mark.parametrize(
    "code",
    ["'{}'.format(x)", "FORM.format(x)", "FORMS[k].format(x)", "7 % n", "'%s' % (x,)", "model.eval()", "re.compile(p)"],
)
def test_the_search_lets_plain_code_be(code: str) -> None:
    assert list(findings(ast.parse(code))) == []


SCRIPTS = re.compile(
    r"innerHTML\s*=|outerHTML\s*=|insertAdjacentHTML|document\.write|\beval\(|new Function|\|\s*safe\b"
)


def test_no_script_or_template_takes_text_for_markup_or_code() -> None:
    files = [
        p for folder in FOLDERS for kind in ("js", "html", "j2") for p in sorted((ROOT / folder).rglob(f"*.{kind}"))
    ]
    assert len(files) > 50
    hits = {path.relative_to(ROOT).as_posix() for path in files if SCRIPTS.search(path.read_text(encoding="utf-8"))}
    assert hits == set()
    assert SCRIPTS.search("{{ x | safe }}")
    assert SCRIPTS.search("a.innerHTML = b")
