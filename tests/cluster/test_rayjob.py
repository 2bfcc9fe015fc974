"""A run that is refused lets its RayJob not be tried again; one that can go on does not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from cluster.errors import ExitCode
from cluster.rayjob import NEEDS_A_PERSON, try_no_more


@pytest.fixture
def account(tmp_path: Path) -> Path:
    for name, text in {"token": "first", "namespace": "waymark", "ca.crt": "-"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("code", ExitCode)
def test_what_needs_a_person_is_not_tried_again(account: Path, code: ExitCode) -> None:
    asked: list[httpx.Request] = []

    def server(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json={})

    said = try_no_more("mine", code, account, httpx.MockTransport(server))
    assert (code in NEEDS_A_PERSON) == (code in (2, 3)) == bool(said) == bool(asked)
    for request in asked:
        assert (request.method, request.url.path) == ("PATCH", "/apis/ray.io/v1/namespaces/waymark/rayjobs/mine")
        assert json.loads(request.content) == {"spec": {"backoffLimit": 0}}
        assert request.headers["authorization"] == "Bearer first"


def test_a_server_that_refuses_is_a_sentence(account: Path) -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(403, text="no such right"))
    said = try_no_more("mine", ExitCode.USAGE, account, transport)
    assert said is not None
    assert said.startswith("RayJob mine may be tried again")
    assert "403: no such right" in said


@pytest.mark.parametrize("words", [["train", "no-such-recipe.yaml"], ["train", "--no-such-option"]])
def test_a_refused_command_tells_it_and_keeps_its_code(words: list[str], child_env: dict[str, str]) -> None:
    """There is no account here, so it says so; a command that is not refused says nothing of a RayJob."""
    command = [sys.executable, "-m", "cluster.rayjob", "mine"]
    refused = subprocess.run([*command, *words], capture_output=True, text=True, timeout=120, env=child_env)
    assert refused.returncode == ExitCode.USAGE
    assert "RayJob mine may be tried again" in refused.stderr
    answered = subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=120, env=child_env)
    assert (answered.returncode, "RayJob" in answered.stderr) == (0, False)
    assert "waymark" in answered.stdout
