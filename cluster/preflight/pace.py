"""What a phase of a recipe comes to: tokens, and the learner's hours on the machine at hand.

Owns what ``waymark check`` says of it. The rate is measured in a process of its own, since the driver goes without
torch; where the learner's device is not here it is what the user says, or nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys

from cluster.preflight.memory import size_of_start
from cluster.recipe.recipe import Recipe
from learner.algorithms import resolve
from learner.pace import ACHIEVED, PhaseData, phase_work
from learner.settings import LearnerSettings
from policy.model_size import ModelSize, ModelSizeUnknown
from replay.perplexity import SCORED_AT_ONCE

_LIMIT_S = 120.0
"""Fixed: importing torch takes seconds, measuring one."""


def phase_pace(recipe: Recipe, tflops: float | None, *, measure: bool) -> list[str]:
    """Return what to say of a phase; its hours where ``tflops`` says what the learner's device does, or by measuring.

    Nothing is said where the run has no phases, or where the model's size is not known, which the plan tells.
    """
    try:
        size = size_of_start(recipe)
    except ModelSizeUnknown:
        return []
    if not (recipe.run.phases and resolve(recipe.learner).needs_phases):
        return []
    policy, rollout = recipe.policy, recipe.rollout
    played = recipe.curriculum.tasks_per_phase * recipe.run.attempts_per_task
    cap = recipe.replay.cap(played)
    scored = max(SCORED_AT_ONCE, 2 * cap) if cap else 0
    data = PhaseData(played, cap, scored, rollout.max_steps, rollout.final_state)
    longest = policy.max_prompt_tokens + policy.max_new_tokens
    work = phase_work(recipe.learner, size, data, longest)
    steps = played * rollout.max_steps
    prompts, replies = _count(steps * policy.max_prompt_tokens), _count(steps * policy.max_new_tokens)
    said = (
        f"A phase, at most: {played} episodes of {rollout.max_steps} steps, {prompts} prompt tokens and {replies} new "
        f"ones at the policy; {_count(work.tokens)} tokens through the learner's models, in forward passes worth "
        f"{_count(work.passes)}."
    )
    if tflops is None and not measure:
        return [said, "The learner's hours: with --measure, or --tflops for the learner's device elsewhere."]
    rate = tflops * 1e12 if tflops is not None else _measured(recipe.learner, size)
    if rate is None:
        absent = f"there is no {recipe.learner.device} here that could be measured"
        return [said, f"The learner's hours are not told: {absent}; --tflops says what its device does."]
    ranks, source = recipe.learner.ranks, "as said" if tflops is not None else "measured here"
    hours, of_each = work.hours(ranks * rate), f" on each of {ranks} ranks" if ranks > 1 else ""
    return [
        said,
        f"The learner takes {hours:.2g} h for it: {_count(work.passes / hours / 3600)} tokens a second forward, "
        f"{ACHIEVED:.0%} of {rate / 1e12:.3g} TFLOP/s in matrix products{of_each} ({source}).",
    ]


def _measured(settings: LearnerSettings, size: ModelSize) -> float | None:
    inner = max(size.mlp // size.layers, 1)
    what = (settings.device, settings.precision, settings.threads, size.width, inner)
    command = [sys.executable, "-m", "learner.matmul_rate", *map(str, what)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(settings.threads), "PYTHONPATH": os.pathsep.join(sys.path)}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_LIMIT_S, check=True)
        return float(done.stdout)
    except (subprocess.SubprocessError, OSError, ValueError):
        return None


def _count(number: float) -> str:
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g} {sign}"
    return f"{number:.3g}"
