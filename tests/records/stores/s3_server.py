"""moto's S3 server in a process of its own, on loopback, with a bucket."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

BUCKET = "waymark-tests"
_PROGRAM = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
server.stop()
"""


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """Yield the environment in which ``s3://waymark-tests/…`` is served."""
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        endpoint = f"http://127.0.0.1:{int(process.stdout.readline())}"
        ends = time.monotonic() + 30
        request = urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")
        while True:
            try:
                with urllib.request.urlopen(request, timeout=5):
                    break
            except OSError:
                assert time.monotonic() < ends
                time.sleep(0.1)
        yield {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "waymark-test-key",
            "AWS_SECRET_ACCESS_KEY": "waymark-test-secret",
        }
    finally:
        process.kill()
        process.communicate(timeout=10)
