"""Where demonstrations are played: always on the embedded sites, whose scripted experts need no browser."""

from __future__ import annotations

from dataclasses import replace

from cluster.recipe.recipe import Recipe
from sites.settings import SitesSettings

DEMONSTRATED = "browserless"
"""The environment in which experts play."""


def demonstrated_sites(recipe: Recipe) -> SitesSettings:
    """Return the settings of the sites that experts play on; chains are of the lengths that are demonstrated."""
    settings = recipe.environment_settings(DEMONSTRATED)
    assert isinstance(settings, SitesSettings)
    return replace(settings, chains=replace(settings.chains, lengths=settings.chains.demonstrated, trained=()))
