"""src/replay is shared by learners, workers and tools: it may not drag their libraries along."""

import os
import subprocess
import sys


def test_replay_imports_only_numpy_and_pyarrow():
    program = (
        "import sys, numpy, pyarrow, pyarrow.ipc; before = set(sys.modules)\n"
        "import replay.buffer, replay.perplexity, replay.progress, records.episodes, replay.schema, replay.settings\n"
        "new = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "foreign = new - set(sys.stdlib_module_names) - {'records', 'replay', 'numpy', 'pyarrow'}\n"
        "sys.exit(f'imported {sorted(foreign)}' if foreign else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
