"""Export a trace as a table or a file."""

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Literal, cast

# Only tables need it, and it is loaded with the first trace all the same: Plotly looks whether pandas is there, and
# fails on one that another thread of a server is just loading.
import pandas

from attention_viz.trace.ahead import Progress
from attention_viz.trace.files.read import read_trace
from attention_viz.trace.files.write import write_trace
from attention_viz.trace.table import weights_table

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

__all__ = ["Filed"]


class Filed:
    """What a trace is written to and read from."""

    def table(
        self,
        layer: int | None = None,
        head: int | None = None,
        stream: str | None = None,
        *,
        layers: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> pandas.DataFrame:
        """Every weight as a row.

        Columns stream, layer, head, query, query_token, key, key_token, weight, query_written, key_written.
        A token is the tokenizer's own piece, such as "Ġbank"; written is how people read it, "·bank".

        What takes more than ten seconds says first how many rows it has and how long it may take, and then on standard
        error how far it is.

        Args:
            layer: only this layer; all by default.
            head: only this head; all by default.
            stream: only this stream; all by default.
            layers: only these layers; all by default.
            progress: told after each head which share is done, from 0 to 1, in place of lines on standard error; what
                it raises stops the work.

        Raises:
            TraceError: there is no such layer or stream.
            ShapeError: there is no such head; or layer and layers were both given.
        """
        return weights_table(cast("Trace", self), layer, head, stream, layers, progress)

    def save(
        self,
        path: str | PathLike[str],
        *,
        layers: Sequence[int] | None = None,
        what: Literal["all", "terms", "weights"] = "all",
        dtype: Literal["float16", "float32"] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Write the trace to one file at exactly that path: safetensors, with JSON in its header.

        A file of less says so: the trace that `load` makes of it has in its provenance what was stored and the largest
        absolute difference between a weight of the run and the file's, which is measured over all weights here. What
        takes more than ten seconds says first how large it is and how long it may take, and then on standard error how
        far it is.

        Args:
            path: where to; what is there already stays until the new file is whole.
            layers: only these layers, which keep their numbers; all by default.
            what: "all"; "terms", the calls' queries, keys, values, masks and biases without what stands around them
                (embeddings, heads joined); or "weights" alone: what needs queries and keys refuses such a trace, as it
                does one of `from_weights`. The output is kept in each.
            dtype: numbers of wider kinds are rounded to this one, and widened again when the file is read; None keeps
                all as they are. "float16" halves the file, and a weight is then some 1e-4 to 1e-3 off where scores are
                large.
            progress: told now and then which share is done, from 0 to 1, in place of lines on standard error; what it
                raises stops the work, and nothing is written.

        Raises:
            TraceError: nothing can be written there, a layer isn't kept, or numbers are too large for the dtype; or
                weights alone of a layer with attention sinks.
            ShapeError: another word than these, or no such layers.
        """
        write_trace(cast("Trace", self), path, layers=layers, what=what, dtype=dtype, progress=progress)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Trace":
        """Read a trace back from a file that `save` wrote.

        Raises:
            TraceError: the file is missing, broken, or not a trace of ours.

        Warns:
            AttentionVizWarning: it holds rounded numbers or weights alone, with the error that this brings.
        """
        return read_trace(cast("type[Trace]", cls), path)
