"""Read how much memory a device has free."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_MEMORY = Path("/proc/meminfo")
# A container's limit and use, which /proc doesn't show.
_LIMIT, _USED = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")


def free_memory(device: "torch.device") -> int | None:
    """Return the free bytes of a device; None if the system doesn't say."""
    if device.type == "cuda":
        import torch

        return int(torch.cuda.mem_get_info(device)[0])
    if device.type != "cpu":
        return None
    found = [one for one in (_available(), _left_in_container()) if one is not None]
    return min(found, default=None)


def _available() -> int | None:
    try:
        lines = _MEMORY.read_text(encoding="ascii").splitlines()
    except OSError:
        return _by_psutil()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _by_psutil() -> int | None:
    """Ask psutil, which accelerate brings, on systems without /proc."""
    try:
        import psutil
    except ImportError:
        return None
    return int(psutil.virtual_memory().available)


def _left_in_container() -> int | None:
    try:
        limit, used = _LIMIT.read_text(encoding="ascii").strip(), _USED.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return max(0, int(limit) - int(used)) if limit.isdecimal() and used.isdecimal() else None
