"""The tests of `on_another_device.py`, in a process of their own: torch knows the device from then on, for good."""

import subprocess
import sys
from pathlib import Path

_TESTS = Path(__file__).with_name("on_another_device.py")


def test_everything_asked_of_a_model_on_another_device_is_what_it_is_here() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", str(_TESTS)]
    ran = subprocess.run(command, cwd=_TESTS.parents[2], capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
