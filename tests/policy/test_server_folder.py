"""A policy server on a node that does not see the run folder says so, loads nothing and makes no folder."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policy.backend import Serving
from policy.client import StartFailed
from policy.server import PolicyServer
from policy.settings import PolicySettings
from policy.torch_backend import TorchSettings
from policy.vllm.backend import VllmSettings
from policy.vllm.server import VllmServer
from records.folder_mark import marked_folder


def torch_server(folder: Path, mark: str) -> Any:
    model, published = folder / "policy", folder / "current.json"
    return PolicyServer(PolicySettings(), TorchSettings(), str(model), str(published), mark=mark)


def vllm_server(folder: Path, mark: str) -> Any:
    serving = Serving(
        PolicySettings(), str(folder / "policy"), folder / "current.json", "run", folder / "logs", mark=mark
    )
    return VllmServer(
        serving, VllmSettings(), log_file=folder / "logs" / "server.log", python=sys.executable, token="t"
    )


@pytest.mark.parametrize("start", [torch_server, vllm_server])
async def test_a_server_starts_only_where_it_sees_the_run_folder(
    tmp_path: Path, start: Callable[[Path, str], Any]
) -> None:
    out = tmp_path / "out"
    with pytest.raises(StartFailed, match=f"does not see the run folder: {out} is not there; mount"):
        await start(out, str(out / ".mark-1")).ping()
    assert not out.exists()
    out.mkdir()
    with marked_folder(out):
        with pytest.raises(StartFailed, match="another folder than the driver's"):
            await start(out, str(out / ".mark-of-another")).ping()
        assert [path.name for path in out.iterdir() if not path.name.startswith(".mark-")] == []
