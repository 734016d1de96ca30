"""Where on this machine what was made of packages is kept."""

import os
from pathlib import Path

import platformdirs

__all__ = ["VARIABLE", "cache_folder"]

# The environment variable that moves the cache.
VARIABLE = "ATTENTION_VIZ_CACHE"


def cache_folder() -> Path:
    """The folder that `VARIABLE` names; by default the one that this system has for caches of this user."""
    named = os.environ.get(VARIABLE, "").strip()
    return Path(named).expanduser().absolute() if named else platformdirs.user_cache_path("attention_viz")
