"""MiniWoB++ as a kind of environment.

Owns ``MINIWOB``; its host raises ``EpisodeFailed`` where the ``miniwob`` package is not installed.
"""

from __future__ import annotations

from environments.browser.settings import BrowserSettings
from environments.kinds import EnvironmentHost, EnvironmentKind
from environments.task_sources import TaskSource
from judges.interface import TrajectoryJudge
from plugs.options import NoOptions


def _tasks(settings: NoOptions) -> TaskSource:
    from environments.miniwob.tasks import MiniwobTasks

    return MiniwobTasks()


def _host(settings: NoOptions, connection: None, browser: BrowserSettings, judge: TrajectoryJudge) -> EnvironmentHost:
    """Return a host; the judge has nothing to say, because a page judges its own task."""
    from environments.miniwob.host import MiniwobHost

    return MiniwobHost(browser)


MINIWOB = EnvironmentKind(settings=NoOptions, tasks=_tasks, host=_host)
"""The environment ``miniwob``."""
