"""A monitor of one's own: each evaluation is posted to an address, such as that of a chat room."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

from cluster.monitors.monitor import MonitorKind


@dataclass(frozen=True)
class WebhookSettings:
    """Where the address is: settings are written into run folders, so a secret is named and not given."""

    __pydantic_config__ = {"extra": "forbid"}
    variable: str = "WEBHOOK_URL"
    timeout_s: float = 5.0


class Webhook:
    """Tells shares of success; without an address, nobody."""

    def __init__(self, out: Path, settings: WebhookSettings) -> None:
        self._run, self._url, self._timeout_s = out.name, os.environ.get(settings.variable, ""), settings.timeout_s

    def numbers(self, phase: int, stage: str, values: Mapping[str, float]) -> None:
        """Post the shares of an evaluation."""
        shares = [f"{name} {value:.2f}" for name, value in values.items() if name.endswith(".success")]
        if stage == "evaluate" and shares:
            self._post(f"{self._run}, phase {phase}: {', '.join(shares)}")

    def set_aside(self, stages: Collection[tuple[int, str]], folder: Path) -> None:
        """Say which phases are done again; what was posted stays."""
        if stages:
            self._post(f"{self._run}: done again from phase {min(phase for phase, _ in stages)} on")

    def links(self) -> Mapping[str, str]:
        """Return nothing: the address is a secret."""
        return {}

    def close(self) -> None:
        """Write nothing more: all is posted."""

    def _post(self, text: str) -> None:
        if not self._url:
            return
        request = Request(self._url, json.dumps({"text": text}).encode(), {"Content-Type": "application/json"})
        try:
            urlopen(request, timeout=self._timeout_s).close()
        except OSError as error:  # the run goes on without those who listen
            logging.getLogger(__name__).warning("nobody was told %r: %s", text, error)


WEBHOOK = MonitorKind(WebhookSettings, Webhook)
