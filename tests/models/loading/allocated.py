"""Count what torch allocates on the CPU in a block, by its profiler: the same bytes on any machine."""

from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile


class Allocated:
    """Bytes allocated within the block, of this thread.

    Files that are mapped, as safetensors does, aren't among them: their pages can go at any time.

    Attributes:
        most: the most bytes at one time.
        end: the bytes at the end.
    """

    most = end = 0

    def __enter__(self) -> "Allocated":
        self._threads = torch.get_num_threads()
        # Kernels make buffers per thread.
        torch.set_num_threads(1)
        self._profile = profile(activities=[ProfilerActivity.CPU], profile_memory=True)
        self._profile.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._profile.__exit__(*error)
        torch.set_num_threads(self._threads)
        sizes = dict[int, int]()
        for place, size in _events(self._profile):
            if size > 0:
                sizes[place] = size
                self.end += size
            else:
                self.end -= sizes.pop(place, 0)  # what was there before doesn't count
            self.most = max(self.most, self.end)


def _events(found: Any) -> list[tuple[int, int]]:
    """Return the address and size of each allocation in time, with a negative size once it is freed."""
    waiting, events = list(found.profiler.kineto_results.experimental_event_tree()), list[tuple[int, int, int]]()
    while waiting:
        event = waiting.pop()
        waiting += event.children
        if event.name == "[memory]":
            fields = event.extra_fields
            # A mapped file isn't part of the allocator's total.
            if fields.alloc_size <= max(0, fields.total_allocated):
                events.append((event.start_time_ns, fields.ptr, fields.alloc_size))
    return [(place, size) for _, place, size in sorted(events)]
