"""A run as the bytes that the explorer reads."""

import weakref
from typing import TYPE_CHECKING

from attention_viz.serving.door import long_text
from attention_viz.trace.once import once, once_for_each

if TYPE_CHECKING:
    from attention_viz.serving.run import Run

__all__ = ["long_id_of", "payload_of"]


def payload_of(run: "Run") -> bytes:
    """Return the run's bytes for the explorer, packed once.

    If the text is long, these are small pictures of all heads; `ui.packing.heads` has the one on the screen.
    """
    return _packed(run).payload


def long_id_of(run: "Run") -> str | None:
    """Return the id that `pack_head` needs for a long text's heads; None if the run's bytes hold all weights."""
    return _packed(run).long_id


class _Packed:
    """What was packed of a run, each with a lock of its own; it doesn't keep the run in memory."""

    def __init__(self, run: "Run") -> None:
        self._run = weakref.ref(run)

    @once
    def payload(self) -> bytes:
        """Pack the trace as the explorer reads it."""
        from attention_viz.explorer import is_long, pack

        run = self._run()
        assert run is not None, "whoever asks holds it"
        with long_text(run.tokens):
            return pack(run.trace, terms=() if is_long(run.trace) else None, findings=run.findings)

    @once
    def long_id(self) -> str | None:
        """Read the id of a long text out of what was packed."""
        from attention_viz.explorer import id_of

        return id_of(self.payload)


@once_for_each
def _packed(run: "Run") -> _Packed:
    return _Packed(run)
