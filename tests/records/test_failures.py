"""Every code is there once, says whose fault it is and what to do; a failure survives a process's border."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

from records import failure_codes
from records.failures import EpisodeFailed, Failure, FailureCode, FailureKind

ROOT = Path(__file__).resolve().parents[2]
CODES = {name: code for name, code in vars(failure_codes).items() if isinstance(code, FailureCode)}


def test_no_two_codes_have_one_name_and_each_is_called_as_it_is_named() -> None:
    assert {name: code.name for name, code in CODES.items()} == {name: name.lower() for name in CODES}
    assert len({code.name for code in CODES.values()}) == len(CODES)


def test_each_code_has_a_remedy() -> None:
    assert [name for name, code in CODES.items() if not code.remedy] == []
    assert {code.kind for code in CODES.values()} == set(FailureKind)


def test_codes_are_made_in_one_module_only() -> None:
    """What a judge of somebody's own raises is retyped, and shards are read: these two give a name they were given."""
    made = []
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "FailureCode":
                made.append(path.relative_to(ROOT / "src").as_posix())
    assert set(made) == {"records/failure_codes.py", "judges/patient.py", "replay/schema.py"}


def test_every_code_is_used() -> None:
    text = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "src").rglob("*.py") if p.stem != "failure_codes")
    assert [name for name in CODES if f"codes.{name}" not in text] == []


def test_a_failure_survives_pickling_and_reads_well() -> None:
    raised = EpisodeFailed(Failure(failure_codes.SITE_ERROR, "the site answered 503"))
    found = pickle.loads(pickle.dumps(raised))  # noqa: S301 - our own bytes
    assert found.failure == raised.failure
    assert str(found) == "infra/site_error: the site answered 503"
