"""Tasks that need no task file: to look at the start page of each site.

Owns ``start_pages``, for trying out a set-up. They only read, need no judge, and log in where there is an account.
"""

from __future__ import annotations

from environments.webarena.login.accounts import Accounts
from environments.webarena.settings import WebArenaSettings
from environments.webarena.sites.deployments import deployments_of
from records.episodes import Task
from records.placeholders import placeholder

START_PAGES = "start-pages"
"""Stands in ``environments.webarena.task_files`` where a path is expected."""


def start_pages(settings: WebArenaSettings, split: str) -> list[Task]:
    """Return a task for each site that has an address.

    Raises:
        ValueError: where no site has one, naming the variables; where the accounts cannot be read.
    """
    sites = {site for deployment in deployments_of(settings).values() for site in deployment.addresses.bases}
    accounts = Accounts.load(settings.credentials_file)
    return [_task(site, split, site in accounts) for site in sorted(sites)]


def _task(site: str, split: str, require_login: bool) -> Task:
    start = placeholder(site) + "/"
    return Task(
        task_id=f"{START_PAGES}.{site}",
        sites=(site,),
        intent=f"Show me the start page of {site}",
        start_url=start,
        evaluation={"eval_types": ["url_match"], "reference_url": start, "url_note": "EXACT"},
        template=START_PAGES,
        parameters={"site": site},
        require_login=require_login,
        split=split,
    )
