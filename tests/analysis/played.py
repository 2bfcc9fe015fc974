"""Episodes made by hand for the failure analyzer's tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analysis.routes import Route
from records.episodes import Source, Step, Termination, Trajectory


def click(element: int, name: str) -> tuple[str, str]:
    return f'do(action="Click", element="{element}")', f"link {name}"


EXIT = ('exit(message="done")', None)


def route(
    *moves: tuple[str, str | None],
    outcome: float = 0.0,
    pages: Sequence[str] = (),
    milestones: Sequence[Sequence[bool]] = (),
    task: str = "buy-1",
    template: str = "shop.buy",
    horizon: int = 6,
    name: str = "e",
    intent: str = "Buy the lamp",
    termination: Termination = Termination.MAX_STEPS,
    **header: object,
) -> Route:
    """Return the route of (call, element) pairs, each on a page of its own unless ``pages`` says which."""
    nothing = np.zeros(0, np.int32)
    steps = tuple(
        Step(
            index, "__SHOP__/", pages[index] if pages else f"page {index}", nothing, nothing,
            nothing.astype(np.float32), 0, 1.0, call, element=element,
            milestones=tuple(milestones[index]) if milestones else (),
            parse_error=None if "(" in call else "expected one call",
        )
        for index, (call, element) in enumerate(moves)
    )  # fmt: skip
    exited = bool(moves) and moves[-1][0].startswith("exit")
    fields: dict[str, object] = {"source": Source.EVALUATION, "phase": 1, "site": "shop", "split": "test"} | header
    return Route.of(
        Trajectory(
            episode_id=name, task_id=task, template=template, intent=intent, seed=0, steps=steps, failure=None,
            termination=Termination.EXIT if exited else termination, answer=None, outcome=outcome,
            final_milestones=tuple(milestones[-1]) if milestones else (), horizon=horizon, **fields,  # type: ignore[arg-type]
        )
    )  # fmt: skip
