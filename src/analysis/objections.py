"""Why an episode was judged a failure, in a line.

Owns reading what an evaluator recorded for a person. Invariant: evidence of any other form says nothing.
"""

from __future__ import annotations

import json

from records.episodes import Trajectory

_WRONG = {"string_match": "wrong answer", "url_match": "wrong address", "program_html": "wrong content"}
"""What a failed check of each of WebArena's evaluators means."""
_OBJECTION_CHARS = 200


def objection_to(episode: Trajectory) -> str:
    """Return in a line why an episode was judged a failure: its milestones, if all hold, and its first failed check.

    The line is empty for an episode without such a verdict, and where neither says anything.
    """
    if episode.outcome != 0.0:
        return ""
    reached = "all milestones" if episode.final_milestones and all(episode.final_milestones) else ""
    failed = next((line.removeprefix("fail ") for line in _checks(episode.evidence) if line.startswith("fail ")), "")
    check, _, found = failed.partition(": ")
    evaluator = next((word for word in check.split() if word in _WRONG), None)
    if evaluator == "string_match" and episode.answer is None:
        wrong = "no answer"
    elif evaluator:
        wrong = f"{_WRONG[evaluator]}: {found}"
    else:
        wrong = failed
    told = ", ".join(filter(None, (reached, wrong or (reached and "but the evaluator says no"))))
    return told if len(told) <= _OBJECTION_CHARS else f"{told[: _OBJECTION_CHARS - 1]}…"


def _checks(evidence: str) -> list[str]:
    """Return the lines of an evaluator's evidence; none where it is no JSON list of text."""
    try:
        lines = json.loads(evidence)
    except (ValueError, RecursionError):
        return []
    return [line for line in lines if isinstance(line, str)] if isinstance(lines, list) else []
