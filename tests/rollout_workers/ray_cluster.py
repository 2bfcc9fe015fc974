"""A small Ray of this test process's own, with a throw-away token."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import ray
from ray._raylet import AuthenticationTokenLoader, Config

from cluster.ray_runtime import running_ray

ENVIRONMENT = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16), "OMP_NUM_THREADS": "1"}


@contextmanager
def small_ray(num_cpus: int = 2) -> Iterator[None]:
    """Start Ray without a dashboard and shut it down afterwards; an already running one is used as it is."""
    with patch.dict(os.environ, ENVIRONMENT):
        # Ray read its authentication mode when it was first imported, perhaps by another test: read it again.
        Config.initialize("")
        AuthenticationTokenLoader.instance().reset_cache()
        if ray.is_initialized():
            yield
            return
        with running_ray(
            num_cpus=num_cpus,
            include_dashboard=False,
            object_store_memory=128 * 2**20,
            log_to_driver=False,
            configure_logging=False,
        ):
            yield
