"""How many examples each strategy gives: a few, always the same, or many new ones where the environment says so."""

import contextlib
import os
import resource
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

__all__ = ["JSON", "bounded_memory", "examples"]

# How many examples each test takes; set by `make fuzz`.
_VARIABLE = "ATTENTION_VIZ_FUZZ_EXAMPLES"

# What somebody may put where something else belongs.
_LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 2, 3, 7, 2**20, 2**31, 2**32, 2**40, 2**63, 2**64, -(2**63), 0.5, 1e300, 1e-300]),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
)
JSON = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def examples(few: int) -> Callable[[Any], Any]:
    """So many examples, always the same; as many as `make fuzz` asks for, new ones each time, where it runs."""
    asked = os.environ.get(_VARIABLE)
    return settings(
        max_examples=int(asked) if asked else few,
        derandomize=not asked,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


@contextlib.contextmanager
def bounded_memory(more: int) -> Iterator[None]:
    """Let this process take so many bytes more than it has, as far as the system counts that: an error beyond."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        has = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (has + more, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
