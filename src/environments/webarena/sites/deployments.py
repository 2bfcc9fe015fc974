"""The deployments that the settings name.

Owns the way from ``WebArenaSettings`` to ``Deployment``. Invariant: addresses come from the
settings, else for the first deployment from the environment of the process that asks. Starts nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from environments.webarena.settings import WebArenaSettings
from environments.webarena.sites.addresses import AddressError, SiteAddresses, variable
from environments.webarena.sites.episode_addresses import Deployment
from environments.webarena.sites.table import SiteTable


def with_addresses(settings: WebArenaSettings, environ: Mapping[str, str] = os.environ) -> WebArenaSettings:
    """Return the settings with the first deployment's addresses from the environment in them.

    So that all processes of a run, on whatever machine, mean the same sites.

    Raises:
        AddressError: for a site that WebArena does not have, or an address that is none.
    """
    first, *others = settings.deployments
    names = SiteTable.of(settings).names
    found = SiteAddresses.from_environment(configured=first.addresses, environ=environ, names=names)
    return replace(settings, deployments=(replace(first, addresses=dict(found.bases)), *others))


def deployments_of(settings: WebArenaSettings) -> dict[str, Deployment]:
    """Return the deployments.

    Raises:
        AddressError: where a deployment has not a single address, naming the variables; for a site that WebArena does
            not have, or an address that is none.
        ValueError: for a name that cannot be part of a host name.
    """
    made, names = {}, SiteTable.of(settings).names
    for deployment in with_addresses(settings).deployments:
        if not deployment.addresses:
            raise AddressError(
                f"webarena deployment {deployment.name}: expected the address of at least one site, found none; set "
                f"those that your tasks need of the environment variables {', '.join(map(variable, names))} (such as "
                "SHOPPING=http://host:7770) for the first deployment, or environments.webarena.deployments[].addresses"
            )
        addresses = SiteAddresses(deployment.addresses, names)
        made[deployment.name] = Deployment.of(deployment.name, addresses, deployment.extra_origins)
    return made
