"""A Ray of this run's own, or a connection to a cluster.

Owns ``ray.init`` and ``ray.shutdown``. Invariants: a local Ray listens on this machine only, asks for
a token that lives as long as the process, and has the cores and the object store that the plan names.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.config import Recipe
from cluster.machine import Machine
from cluster.plan import make_plan

logger = logging.getLogger(__name__)
_ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def ray_session(recipe: Recipe) -> Iterator[str]:
    """Start or join Ray; yield the dashboard's address, or an empty text where there is none.

    With ``run.resources.address`` set, or inside a submitted job, the cluster there is joined; its
    authentication is the cluster's own business.
    """
    address = recipe.run.resources.address or os.environ.get("RAY_ADDRESS", "")
    if not address:
        # Ray reads these once, when it is first imported: a second session in this process keeps the first's token.
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        os.environ.setdefault("RAY_DEDUP_LOGS", "1")
    import ray

    path = os.pathsep.join([str(_ROOT / "src"), str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    # One thread per process: oversubscribed OpenMP slows small matrices down many times.
    environment = {"env_vars": {"PYTHONPATH": path, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}}
    if address:
        context = ray.init(address=address, runtime_env=environment, log_to_driver=False)
    else:
        plan = make_plan(recipe, Machine.here())
        context = ray.init(
            num_cpus=int(plan.ray_cpus),
            num_gpus=int(plan.ray_gpus),
            include_dashboard=recipe.run.dashboard,
            dashboard_host="127.0.0.1",
            object_store_memory=recipe.run.resources.object_store_mb * 2**20,
            runtime_env=environment,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    try:
        yield context.dashboard_url or ""
    finally:
        ray.shutdown()
