"""The proof of accounting: does a run folder add up? Behind ``waymark audit`` and the end of every phase.

Owns what is checked and in which order. Invariants: nothing is written, and a run may go on meanwhile; each
finding names what is wrong and where. Imports neither torch nor Ray.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.audit.accounts import StageLedger, check_episodes, check_ledger, check_training
from cluster.audit.files import check_files, check_first_states, check_manifests, check_shards
from cluster.audit.labels import check_labels
from cluster.audit.record import AuditedRun, AuditPart, Finding, Key
from cluster.errors import RunStopped
from cluster.run_folder.ledger import LedgerLine
from cluster.run_folder.rollback import Rollback
from cluster.run_folder.stage_results import FirstStatesOpened
from replay.buffer import ReplayBuffer

_SHOWN = 3


@dataclass(frozen=True)
class AuditResult:
    """What was looked at and what is wrong; ``accounts`` has the attempts of each stage that played episodes.

    ``rollbacks`` are no findings: what they lost was done again.
    """

    parts: tuple[AuditPart, ...]
    accounts: dict[Key, StageLedger]
    rollbacks: tuple[Rollback, ...] = ()

    @property
    def findings(self) -> list[Finding]:
        """Everything that is wrong, in the order of the parts."""
        return [finding for part in self.parts for finding in part.findings]


def audit(out: Path) -> AuditResult:
    """Check a whole run folder: every manifest, every file, every episode, every trained step, every attempt.

    Raises:
        ManifestError: there is no run in ``out``.
    """
    run = AuditedRun.read(out)
    phases = {phase for phase, _ in run.entries}
    parts = (
        check_manifests(run),
        check_files(run),
        check_shards(run),
        check_episodes(run, phases),
        check_training(run, phases),
        check_ledger(run, phases),
        *([check_first_states(run)] if run.has(FirstStatesOpened) else []),
        *([check_labels(run, phases)] if run.judges else []),
    )
    accounts = {key: StageLedger.of(lines) for key, lines in sorted(run.lines.items())}
    return AuditResult(parts, accounts, tuple(run.rollbacks))


def require_balance(out: Path, phase: int, buffer: ReplayBuffer, ledger: Sequence[LedgerLine] | None = None) -> None:
    """Check the accounts of one phase that has just been completed; the files were hashed when they were recorded.

    ``ledger`` has the lines of this phase, of all starts, where they were read already.

    Raises:
        RunStopped: they do not add up; the text says what is wrong.
    """
    run = AuditedRun.read(out, buffer, ledger)
    parts = [check(run, {phase}) for check in (check_episodes, check_training, check_ledger, check_labels)]
    findings = [finding for part in parts for finding in part.findings]
    if findings:
        lines = [f"  {finding.subject} {finding.found}" for finding in findings[:_SHOWN]]
        raise RunStopped(
            f"phase {phase} does not add up ({len(findings)} findings):\n" + "\n".join(lines) + f"\n"
            f"`waymark audit {out}` lists all; nothing that depends on this was started, and the run does not go on "
            "until it is put right"
        )
