from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.records.stores.s3_server import s3_server


@pytest.fixture(scope="session")
def s3() -> Iterator[dict[str, str]]:
    """The environment in which moto serves ``s3://waymark-tests/…``."""
    with s3_server() as environment:
        yield environment
