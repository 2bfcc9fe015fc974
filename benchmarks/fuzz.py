"""Does any input, however hostile, do more than be refused?

Reads ``--inputs`` generated inputs of each target (actions, pages, recipes, task files, judges' replies, answers,
shards, policy folders, the report) and counts those that were taken, those that were refused as documented, and the
findings: other errors, broken promises, hangs, and deaths of the process that reads.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from benchmarks.fuzzing import Outcome, read_many
from benchmarks.recording import Recording, met, option_parser
from benchmarks.runs import child_environment

NAME = "fuzz"
NAMES = ("actions", "pages", "recipes", "tasks", "judges", "answers", "report", "shards", "policy")
_SHARE = 50_000
_SHARE_DEADLINE_S = 3_600.0


def main() -> None:
    """Read all inputs in child processes, print the table and write the numbers; exit 1 where there are findings."""
    options = _options()
    if options.child:
        _read_share(options)
        return
    recording = Recording(NAME, options.results)
    outcomes: dict[str, Outcome] = {}
    for name in options.targets or NAMES:
        outcomes[name] = Outcome()
        while outcomes[name].inputs < options.inputs:
            outcomes[name].add(_in_child(name, outcomes[name].inputs, options))
        _note(recording, name, outcomes[name])
    rows = [[name, o.inputs, o.taken, o.refused, o.found, o.slowest_s, o.inputs / max(o.seconds, 1e-9)]
            for name, o in outcomes.items()]  # fmt: skip
    recording.table(NAME, ("target", "inputs", "taken", "refused", "findings", "slowest, s", "inputs a second"), rows)
    inputs, findings = (sum(getattr(o, what) for o in outcomes.values()) for what in ("inputs", "found"))
    verdict = f"No odd input does harm: {findings} findings in {inputs} inputs: {met(not findings)}"
    targets = {name: asdict(o) for name, o in outcomes.items()}
    recording.write({"seed": options.seed, "targets": targets, "verdicts": [verdict]})
    sys.exit(1 if findings else 0)


def _in_child(name: str, first: int, options: argparse.Namespace) -> Outcome:
    """Read the next share of a target's inputs in a process of its own, which may die of them."""
    count = min(_SHARE, options.inputs - first)
    command = [sys.executable, "-m", "benchmarks.fuzz", "--child", name, "--first", str(first), "--inputs", str(count),
               "--seed", str(options.seed)]  # fmt: skip
    try:
        done = subprocess.run(command, env=child_environment(), capture_output=True, timeout=_SHARE_DEADLINE_S)
    except subprocess.TimeoutExpired:
        return Outcome(count, found=1, findings=[f"{first}-{first + count}: no end in {_SHARE_DEADLINE_S:g} s"])
    if done.returncode:
        said = done.stderr.decode(errors="replace")[-300:]
        return Outcome(count, found=1, findings=[f"{first}-{first + count}: ended with {done.returncode}: {said}"])
    return Outcome(**json.loads(done.stdout))


def _read_share(options: argparse.Namespace) -> None:
    from benchmarks.fuzz_targets import targets  # a child's business: it imports what the targets read with

    target = targets()[options.child]
    calls = -(-options.inputs // target.texts)
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        outcome = read_many(target, range(options.first, options.first + calls), Path(folder), options.seed)
    print(json.dumps(asdict(outcome)))


_MEMORY = Path("/dev/shm")


def _note(recording: Recording, name: str, outcome: Outcome) -> None:
    recording.note(f"{name}: {outcome.inputs} inputs, {outcome.found} findings")
    for line in outcome.findings[:3]:
        recording.note(f"  {line}")


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument("targets", nargs="*", metavar="TARGET", choices=[[], *NAMES], help=f"among {', '.join(NAMES)}")
    parser.add_argument("--inputs", type=int, default=100_000, help="inputs of each target")
    parser.add_argument("--seed", type=int, default=0, help="seed of the inputs")
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--child", choices=NAMES, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
