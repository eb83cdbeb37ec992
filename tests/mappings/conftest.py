"""A test that hangs inside a compiled kernel ends the run with a traceback."""

import contextlib
import faulthandler
import os

import pytest

SECONDS = 150  # the first call of a kernel compiles it


@pytest.fixture(scope="session")
def real_stderr(request):
    """The terminal's stderr: under capture, file descriptor 2 is a temporary file."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
        descriptor = os.dup(2)
    yield descriptor
    os.close(descriptor)


@pytest.fixture(autouse=True)
def never_hang(real_stderr):
    # a signal handler would wait for the kernel to return; this watchdog does not
    faulthandler.dump_traceback_later(SECONDS, exit=True, file=real_stderr)
    yield
    faulthandler.cancel_dump_traceback_later()
