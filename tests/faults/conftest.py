"""One Ray for all rows of the matrix that need one: what they kill are its workers, never Ray itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rollout_workers.ray_cluster import small_ray


@pytest.fixture(scope="package")
def cluster() -> Iterator[None]:
    with small_ray():
        yield
