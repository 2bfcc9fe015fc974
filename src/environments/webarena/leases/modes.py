"""Which of a task's sites an episode only reads and which it may change.

Owns the rule. WebArena's own ``require_reset`` is false in every task, also in those that post, buy and
delete; so the rule reads the evaluators and the intent, and errs towards "changes" (which costs a reset,
where the other error would spoil other episodes). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from environments.webarena.leases.units import Mode
from environments.webarena.sites.table import WEBARENA_SITES, SiteTable
from environments.webarena.tasks.files import needed_sites
from records.episodes import Task

_VERBS = """abandon add approve ask assign buy cancel change close comment create delete disable dislike downvote draft
edit enable fill follow fork increase invite like make mark merge modify notify order post promote purchase rate re-post
reduce remove rename reply reset send set star start submit subscribe thumbs unfollow update upload upvote write"""
CHANGING_VERBS = frozenset(_VERBS.split())
"""Words with which the intent of a changing task begins, for tasks that are judged by their answer or address alone."""


def changes_sites(task: Task, overrides: Mapping[str, bool] | None = None) -> bool:
    """Whether an episode of ``task`` may change a site.

    It does when an override says so, when the task asks for a reset, when its evaluators look at page contents
    (``program_html``), or when its intent begins with a verb of change.
    """
    if overrides and task.task_id in overrides:
        return overrides[task.task_id]
    if task.require_reset or "program_html" in task.evaluation.get("eval_types", ()):
        return True
    words = task.intent.split()
    return bool(words) and words[0].lower().strip(",.:;!\"'") in CHANGING_VERBS


def site_modes(
    task: Task, overrides: Mapping[str, bool] | None = None, table: SiteTable = WEBARENA_SITES
) -> dict[str, Mode]:
    """Return for each site that the task needs whether the episode reads or writes it."""
    writes = changes_sites(task, overrides)
    needed = needed_sites(task, table.names)
    return {site: Mode.WRITE if writes and site not in table.never_changed else Mode.READ for site in needed}
