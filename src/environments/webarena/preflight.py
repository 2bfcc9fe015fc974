"""What ``waymark check`` says about a run on WebArena's sites, before anything is started.

Owns ``look``: the sites' addresses and accounts, the task files, the judge, resets, and waits. Reads files and
variables, imports the judge that is named, and opens no connection.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from environments.kinds import Wanted
from environments.webarena.leases.modes import site_modes
from environments.webarena.leases.units import Mode
from environments.webarena.login.accounts import Accounts, CredentialsMissing
from environments.webarena.reset.resetters import resetters
from environments.webarena.settings import WebArenaSettings
from environments.webarena.sites.addresses import variable
from environments.webarena.sites.deployments import deployments_of
from environments.webarena.sites.episode_addresses import Deployment
from environments.webarena.sites.table import SiteTable
from environments.webarena.tasks.files import needed_sites
from environments.webarena.tasks.source import webarena_task_list
from judges.verdicts import some
from records.checks import Check, Status
from records.episodes import Task

_SET = (
    "set the environment variables {} (such as SHOPPING=http://host:7770), or "
    "environments.webarena.deployments[].addresses"
)
_EPISODE = "rollout.episode_deadline_s"
_RESET = "environments.webarena.deployments[].reset.timeout_s"


def look(settings: WebArenaSettings, wanted: Wanted) -> list[Check]:
    """Return the checks."""
    tasks: dict[str, list[Task]] = {}
    checks = []
    for split, count in wanted.tasks.items():
        check, tasks[split] = _task_file(settings, split, count)
        checks.append(check)
    every = [task for found in tasks.values() for task in found]
    return [
        *checks,
        *_addresses(settings, every),
        *_accounts(settings, every, wanted),
        *_resets(settings, every),
        *_writes(settings, every),
        *wanted.judged(tasks),
        *_waits(settings, wanted),
    ]


def _task_file(settings: WebArenaSettings, split: str, count: int) -> tuple[Check, list[Task]]:
    name, path = f"tasks of {split}", settings.task_files.get(split, "")
    if not path:
        advice = f"name WebArena's task file in environments.webarena.task_files.{split}, or do not evaluate on {split}"
        return Check(name, Status.FAIL, "no file", advice), []
    try:
        tasks = webarena_task_list(settings, split)
    except ValueError as error:
        return Check(name, Status.FAIL, str(error)), []
    found = f"{len(tasks)} in {path}"
    if len(tasks) >= count:
        return Check(name, Status.OK, found), tasks
    setting = "run.training_tasks" if split == "train" else "run.evaluation.tasks_per_split"
    return Check(name, Status.FAIL, found, f"{setting} asks for {count}; set it to {len(tasks)} or less"), tasks


def _addresses(settings: WebArenaSettings, tasks: Iterable[Task]) -> list[Check]:
    names = SiteTable.of(settings).names
    needed = sorted({site for task in tasks for site in needed_sites(task, names)})
    try:
        deployments = deployments_of(settings)
    except ValueError as error:
        return [Check("site addresses", Status.FAIL, str(error))]
    known = {site for deployment in deployments.values() for site in deployment.addresses.bases}
    missing = [variable(site) for site in needed if site not in known]
    if missing:
        found = f"tasks need {', '.join(missing)}"
        return [Check("site addresses", Status.FAIL, found, _SET.format(", ".join(missing)))]
    return [
        Check("site addresses", Status.OK, "; ".join(_described(deployment) for deployment in deployments.values()))
    ]


def _described(deployment: Deployment) -> str:
    sites = (f"{site} {deployment.real_addresses.bases[site]}" for site in deployment.addresses.bases)
    return f"{deployment.name}: {', '.join(sites)}"


def _accounts(settings: WebArenaSettings, tasks: Iterable[Task], wanted: Wanted) -> list[Check]:
    path = settings.credentials_file
    try:
        accounts = Accounts.load(path)
    except CredentialsMissing as error:
        return [Check("site accounts", Status.FAIL, str(error))]
    forms = SiteTable.of(settings).forms
    needed = {site for task in tasks if task.require_login for site in task.sites if site in forms}
    missing = sorted(site for site in needed if site not in accounts)
    checks = [Check("site accounts", Status.OK, f"of {', '.join(sorted(needed)) or 'no site'}")]
    if missing:
        variables = ", ".join(f"{variable(site)}_USERNAME and {variable(site)}_PASSWORD" for site in missing)
        # Workers on other machines may have them, and the driver needs them for first pages alone.
        status = Status.WARN if wanted.elsewhere and not wanted.first_pages else Status.FAIL
        too = ", and here too, where the driver opens first pages" if wanted.elsewhere and wanted.first_pages else ""
        advice = f"set {variables} where the workers run{too}, or environments.webarena.credentials_file"
        checks = [Check("site accounts", status, f"none of {', '.join(missing)}", advice)]
    if path and Path(path).expanduser().stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        others = Check("site accounts", Status.WARN, f"{path} can be read by others", f"chmod 600 {path}")
        checks.append(others)
    return checks


def _resets(settings: WebArenaSettings, tasks: Iterable[Task]) -> list[Check]:
    table = SiteTable.of(settings)
    try:
        can = resetters(settings.deployments, table.names)
    except ValueError as error:
        return [Check("site resets", Status.FAIL, str(error))]
    changing = [t for t in tasks if Mode.WRITE in site_modes(t, settings.writes, table).values()]
    if changing and not can:
        advice = (
            "configure environments.webarena.deployments[].reset, or leave them out; each of them fails as task/no_site"
        )
        return [Check("site resets", Status.WARN, f"none, and {some(changing)} change a site", advice)]
    return [Check("site resets", Status.OK, f"{', '.join(can) or 'none'}; {len(changing)} tasks change a site")]


def _writes(settings: WebArenaSettings, tasks: Iterable[Task]) -> list[Check]:
    """Every task that ``writes`` names is in a task file, one that nothing plays here included."""
    known = {task.task_id for task in tasks}
    if settings.writes.keys() <= known:
        return []
    for split in settings.task_files:
        try:
            known |= {task.task_id for task in webarena_task_list(settings, split)}
        except ValueError:
            return []  # the file is told of where it is played; whether it has these tasks nobody knows
    if not (unknown := sorted(settings.writes.keys() - known)):
        return []
    meant = get_close_matches(unknown[0], known, 1, 0.0)
    advice = f"ids are such as {', '.join(meant)}" if meant else "name a task file that has them"
    return [Check("environments.webarena.writes", Status.FAIL, f"no task is called {', '.join(unknown[:5])}", advice)]


def _waits(settings: WebArenaSettings, wanted: Wanted) -> list[Check]:
    """Return the limits that would fail a run whose episodes only wait: for a log-in, tried twice, or for a reset."""
    resets = [deployment.reset.timeout_s for deployment in settings.deployments if deployment.reset.kind != "none"]
    quiet_s, quiet = max([(wanted.episode_s, _EPISODE), *((reset_s, _RESET) for reset_s in resets)])
    log_ins = "environments.webarena.login_timeout_s, twice"
    needs = (
        ("rollout.reset_deadline_s", wanted.reset_s, 2 * settings.login_timeout_s, log_ins),
        ("rollout.stall_timeout_s", wanted.stall_s, quiet_s, quiet),
        ("environments.webarena.lease_hold_s", settings.lease_hold_s, wanted.episode_s, _EPISODE),
    )
    return [
        Check(
            name,
            Status.FAIL,
            f"expected at least {needed_s:g} s because of {why}, found {found_s:g} s",
            "raise it, or lower the other",
        )
        for name, found_s, needed_s, why in needs
        if found_s < needed_s
    ]
