"""Who knows which token may ask which path of a server of vLLM."""

from __future__ import annotations

from typing import Any

import pytest

from policy.vllm.api import reply_token
from policy.vllm.inside.waymark_guard import VARIABLE, TokenGuard

TOKEN = "run's own"
CONTROL = ("/pause", "/resume", "/collective_rpc", "/update_weight_version", "/v1/load_lora_adapter", "/weight_info")


async def status(monkeypatch: pytest.MonkeyPatch, path: str, *given: str) -> int:
    """The status of a request with these authorization headers; whoever is let in finds 200."""
    monkeypatch.setenv(VARIABLE, TOKEN)
    sent: list[Any] = []

    async def served(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"authorization", value.encode()) for value in given]
    await TokenGuard(served)({"type": "http", "path": path, "headers": headers}, None, send)  # type: ignore[arg-type]
    found: int = sent[0]["status"]
    return found


@pytest.mark.parametrize("path", CONTROL)
async def test_the_token_of_replies_does_not_open_what_changes_a_server(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    assert await status(monkeypatch, path, f"Bearer {TOKEN}") == 200
    assert await status(monkeypatch, path, f"Bearer {reply_token(TOKEN)}") == 401


async def test_replies_are_given_to_both_and_to_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "/inference/v1/generate"
    for token in (TOKEN, reply_token(TOKEN)):
        assert await status(monkeypatch, path, f"Bearer {token}") == 200
    for others in ((), ("Bearer ",), (f"Bearer {reply_token('another')}",), (f"Bearer {TOKEN}", f"Bearer {TOKEN}")):
        assert await status(monkeypatch, path, *others) == 401
    assert await status(monkeypatch, f"{path}/more", f"Bearer {reply_token(TOKEN)}") == 401
    assert await status(monkeypatch, "/health") == 200


def test_a_server_without_a_token_is_asked_without_one() -> None:
    assert reply_token("") == ""
