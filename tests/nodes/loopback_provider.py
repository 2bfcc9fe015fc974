"""Ray's fake provider of nodes, with nodes at loopback addresses of their own."""

from __future__ import annotations

import itertools
from typing import Any
from unittest.mock import patch

from ray._private.parameter import RayParams
from ray.autoscaler._private.fake_multi_node.node_provider import FakeMultiNodeProvider

_numbers = itertools.count(100)


class _AtLoopback(RayParams):  # type: ignore[misc]
    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters, node_ip_address=f"127.0.0.{next(_numbers)}")


class LoopbackProvider(FakeMultiNodeProvider):  # type: ignore[misc]
    """What the autoscaler's configuration names."""

    def _create_node_with_resources_and_labels(self, *arguments: Any, **named: Any) -> None:
        with patch("ray._private.parameter.RayParams", _AtLoopback):
            super()._create_node_with_resources_and_labels(*arguments, **named)
