"""moto's S3 server in a process of its own, on loopback, with a bucket; if asked, as late as a store may be."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BUCKET = "waymark-tests"
_PROGRAM = """
import pathlib, sys, threading, time
import moto.moto_server.threaded_moto_server as server
from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.s3.models import S3Backend
from moto.server import ThreadedMotoServer

one_at_a_time = threading.Lock()

class Atomic(DomainDispatcherApplication):
    def __call__(self, environ, start_response):
        with one_at_a_time:
            return super().__call__(environ, start_response)

class Late(Atomic):
    def __call__(self, environ, start_response):
        answer = super().__call__(environ, start_response)
        asked = pathlib.Path(sys.argv[1], "hold")
        if environ["REQUEST_METHOD"] == "PUT" and asked.exists() and asked.read_text() in environ["PATH_INFO"]:
            pathlib.Path(sys.argv[1], "held").touch()
            while asked.exists():
                time.sleep(0.05)
        return answer

server.DomainDispatcherApplication = Late if sys.argv[1:] else Atomic
if sys.argv[1:]:
    S3Backend.list_objects = lambda *arguments, **named: (set(), set(), False, None)
serving = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
serving.start()
print(serving.get_host_and_port()[1], flush=True)
sys.stdin.read()
serving.stop()
"""


@contextmanager
def s3_server(late: Path | None = None) -> Iterator[dict[str, str]]:
    """Yield the environment in which ``s3://waymark-tests/…`` is served.

    Requests are answered one at a time: a store looks at an object's version and changes it in one go, and moto's
    threads do not.

    With the folder ``late`` no listing ever shows anything, and while there is a file ``late/hold`` whose text is part
    of an object's key, whoever puts that object gets no answer although it is stored; ``late/held`` says that this
    happened.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *([str(late)] if late else [])],
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
