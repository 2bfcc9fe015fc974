"""The generated reference of the plug points: ``docs/reference/plugs.md``.

Owns which types each plug point's page section shows. Invariant: names, types and meanings are read from the registries
and the classes themselves; a part without a docstring is an error here, not a gap there.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.monitors.monitor import MONITORS, Monitor
from cluster.reference.settings import as_cell, as_markdown, attribute_docs, class_body, docstring_of
from environments.admission import Admission
from environments.environment import Environment
from environments.kinds import KINDS, EnvironmentHost, Service, ServiceProcess, Wanted
from environments.task_sources import TaskSource
from judges.interface import (
    AnswerJudge,
    AnswerQuestion,
    EndedEpisode,
    EpisodeJudge,
    MilestoneJudge,
    OpenVerdict,
    PageView,
    PatientAnswerJudge,
    PostponingJudge,
    TrajectoryJudge,
)
from judges.kinds import JUDGES, Judges
from plugs.registry import Registry
from policy.backend import BACKENDS, PolicyService, ServerProcesses, Serving
from policy.client import Completion, PolicyClient, PolicySource, Sampling
from policy.model_size import ModelSize
from policy.publication import WeightServer
from policy.published_weights import PublishedWeights
from records.checks import Check
from records.environment import Observation, Verdict
from records.episodes import Milestone, Task
from records.labels import Label
from records.memory import MemoryPart

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "plugs.md"

_INTRO = """\
# Plug points

Generated from the code by `make docs`; do not edit.

What is plugged in is an object of the plug point's kind. A recipe names it by a name of Waymark's own, by the name of
an entry point of an installed package, or as `module:name`, whose module is on the Python path of the driver and the
workers. A package offers one to everybody who installs it by

```toml
[project.entry-points."waymark.judges"]
same = "my_package.same_answer:SAME"
```

in its `pyproject.toml`, with the group of the plug point. Settings classes are frozen dataclasses with
`__pydantic_config__ = {"extra": "forbid"}`; a key that they have not is an error that names the nearest one.
"""


@dataclass(frozen=True)
class PlugPoint:
    """A plug point on the page: its registry, the protocols that parts of it keep, and the records these exchange."""

    title: str
    registry: Registry[Any]
    named_by: str
    told: str
    protocols: tuple[type, ...]
    records: tuple[type, ...] = ()


POINTS = (
    PlugPoint(
        "Environments",
        KINDS,
        "`run.environment`; its options stand in `environments` under that name",
        "[A guide](../guides/new-environment.md) walks through one. `waymark env check NAME` runs one through the "
        "contract, as `environments.kind_contract.check_kind` does in a test.",
        (EnvironmentHost, Environment, TaskSource, Admission),
        (Service, ServiceProcess, Wanted, Task, Observation, Verdict, Check),
    ),
    PlugPoint(
        "Policy backends",
        BACKENDS,
        "`policy.backend`; its options stand in `policy.options`",
        "[A guide](../guides/plugs.md#a-backend) has one. The contract is a class of tests, "
        "`tests/policy/backend_contract.py`: it lies in Waymark's repository and in no package, so that a backend of "
        "one's own is tested from a checkout, by a subclass.",
        (PolicyService, WeightServer, PolicyClient),
        (Serving, ServerProcesses, PolicySource, Sampling, Completion, PublishedWeights, ModelSize, MemoryPart),
    ),
    PlugPoint(
        "Judges",
        JUDGES,
        "`rollout.trajectory_judge`, `rollout.milestone_judge`, `judges.evaluators.answer_judge`, "
        "`judges.evaluators.otherwise`, and `replay` for judges of recorded episodes; its options stand in `judges` "
        "under that name",
        "[A guide](../guides/plugs.md#a-judge) has one. `judges.contract.check_judge` runs one through what its face "
        "promises.",
        (
            AnswerJudge,
            TrajectoryJudge,
            MilestoneJudge,
            EpisodeJudge,
            PatientAnswerJudge,
            PostponingJudge,
            OpenVerdict,
            PageView,
            Judges,
        ),
        (AnswerQuestion, EndedEpisode, Milestone, Label),
    ),
    PlugPoint(
        "Monitors",
        MONITORS,
        "`monitors`, each with its options",
        "[A guide](../guides/plugs.md#a-monitor) has one. The contract is a test of Waymark's repository, "
        "`tests/cluster/test_monitors.py`, which takes further monitors by name.",
        (Monitor,),
    ),
)
"""Every plug point, in the order of the page."""


def plugs_page() -> str:
    """Return the page as Markdown; raise ``ValueError`` naming a part that has no docstring."""
    return "\n".join([_INTRO, *(line for point in POINTS for line in _point(point))])


def _point(point: PlugPoint) -> Iterator[str]:
    registry = point.registry
    yield from (f"## {point.title}", "", f"Named by {point.named_by}. {point.told}", "")
    yield from (f"Entry points of the group `{registry.group}`. Waymark's own, in `{_where(registry)}`:", "")
    yield from ("| name | is |", "|---|---|", *(f"| `{name}` | `{own}` |" for name, own in registry.own.items()), "")
    yield from _head(registry.kind)
    yield from ("| part | type | default | what |", "|---|---|---|---|")
    defaults = _defaults(registry.kind)
    for name, (annotation, said) in attribute_docs(registry.kind).items():
        default = f"`{defaults[name]}`" if name in defaults else "required"
        yield f"| `{name}` | {as_cell(f'`{annotation}`')} | {as_cell(default)} | {as_cell(as_markdown(said))} |"
    yield ""
    for protocol in point.protocols:
        yield from _head(protocol)
        yield from ("| member | what |", "|---|---|", *(_row(*member) for member in members(protocol)), "")
    for record in point.records:
        yield from _head(record)
        yield from ("```python", *_lines(record), "```", "")


def _where(registry: Registry[Any]) -> str:
    """Return the module and name of a registry, which stands beside its kind."""
    module = inspect.getmodule(registry.kind)
    return next(f"{registry.kind.__module__}.{name}" for name, value in vars(module).items() if value is registry)


def _head(kind: type) -> tuple[str, ...]:
    return f"### {kind.__module__}.{kind.__name__}", "", as_markdown(inspect.cleandoc(kind.__doc__ or "")), ""


def members(kind: type) -> list[tuple[str, str]]:
    """Return each public attribute and method of a class, those that it inherits first, with what is said of it.

    Of a dataclass, the methods alone: its docstring says what its fields are.

    Raises:
        ValueError: naming a member that has no docstring.
    """
    found: dict[str, tuple[str, str]] = {}
    for owner in reversed(kind.__mro__):
        if owner.__module__.partition(".")[0] not in ("builtins", "typing"):
            found.update(_own_members(owner))
    return list(found.values())


def _own_members(kind: type) -> Iterator[tuple[str, tuple[str, str]]]:
    body = class_body(kind)
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and not dataclasses.is_dataclass(kind):
            name, written, said = ast.unparse(node.target), ast.unparse(node), docstring_of(following)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            name, written, said = node.name, _signature(node), ast.get_docstring(node) or ""
        else:
            continue
        if not said:
            raise ValueError(f"{kind.__module__}.{kind.__name__}.{name}: expected a docstring, found none")
        yield name, (written, said)


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return a method as whoever calls it writes it, or a property as an attribute."""
    returns = ast.unparse(node.returns) if node.returns else "None"
    if any(isinstance(decorator, ast.Name) and decorator.id == "property" for decorator in node.decorator_list):
        return f"{node.name}: {returns}"
    node.args.args = node.args.args[1:]
    awaited = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    return f"{awaited}{node.name}({ast.unparse(node.args)}) -> {returns}"


def _row(written: str, said: str) -> str:
    return f"| {as_cell(f'`{written}`')} | {as_cell(as_markdown(said))} |"


def _lines(record: type) -> list[str]:
    """Return the fields of a dataclass as its source has them."""
    names = {field.name for field in dataclasses.fields(record)}
    fields = [node for node in class_body(record) if isinstance(node, ast.AnnAssign)]
    # As the house writes texts; no default holds a quotation mark.
    return [ast.unparse(node).replace("'", '"') for node in fields if ast.unparse(node.target) in names]


def _defaults(kind: type) -> dict[str, str]:
    """Return the default of each field that has one, a function's by its name."""
    assigned = {ast.unparse(node.target): node.value for node in class_body(kind) if isinstance(node, ast.AnnAssign)}
    written = {name: ast.unparse(value) for name, value in assigned.items() if value}
    made = {field.name: field.default_factory for field in dataclasses.fields(kind)}
    factories = {name: factory for name, factory in made.items() if factory is not dataclasses.MISSING}
    return written | {name: repr(factory()) for name, factory in factories.items()}
