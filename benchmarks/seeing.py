"""Images: the cost of recording, and a comparison of DINOv2 with its package's own file."""

import importlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import attention_viz as av
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.sources.packages.dinov2_onnx import OnnxFile
from benchmarks.measuring import on_one_thread
from benchmarks.recorded import COLUMNS, captured_to_plain
from benchmarks.report import Benchmark, Result, Table

__all__ = ["BENCHMARK", "MARK", "MARK_APART"]

MARK, MARK_APART = 1.05, 5e-5
_MODEL = "dinov2-small"
# What the last layer norm of the file's backbone ends with; what stands after it is a decoder that isn't read.
_LAST = "backbone.layernorm.bias"
_SIDE = 224


def run(quick: bool) -> Result:
    """Measure what recording costs, then run the package's file by its own runtime."""
    model = av.load(_MODEL)
    assert isinstance(model, av.AttentionModel) and model.reader is not None
    picture = av.Picture(SAMPLES["chelsea"].path)
    reader = model.reader

    def plain() -> object:
        with torch.no_grad():
            return model.hf_model(**model.runner.inputs(reader.read(picture).tensors))

    with on_one_thread():
        row, ratio = captured_to_plain("a picture of 256 patches", plain, lambda: model.trace(picture), quick)
    remarks = [f"The target, at most {MARK:g}, is {'reached' if ratio <= MARK else f'missed with {ratio:.3f}'}."]
    tables = [Table(COLUMNS, [row], "The cost of recording")]
    if not quick:
        table, remark = _apart(model)
        tables, remarks = [*tables, table], [*remarks, remark]
    return Result(tables, remarks, ["onnxruntime"])


def _apart(model: "av.AttentionModel") -> tuple[Table, str]:
    """Compare our recorded run with onnxruntime's run of the package's file, at the file's own size."""
    rows: list[list[str]] = []
    worst = 0.0
    runtime = _runtime()
    for name in ("chelsea", "astronaut"):
        pixels = _pixels(SAMPLES[name].path)
        ours = av.wrap(model.hf_model, inputs={"pixel_values": pixels}).trace({"pixel_values": pixels}).output
        theirs = torch.from_numpy(runtime(pixels))
        apart, largest = float((ours - theirs).abs().max()), float(theirs.abs().max())
        worst = max(worst, apart)
        rows.append([name, f"{tuple(theirs.shape)}", f"{largest:.2f}", f"{apart:.1e}"])
    mark = f"DINOv2 and onnxruntime are at most {worst:.1e} apart; the target, {MARK_APART:.0e}, is"
    columns = ("picture", "positions, width", "largest number", "largest difference")
    return Table(columns, rows, "Against onnxruntime"), f"{mark} {'reached' if worst <= MARK_APART else 'missed'}."


def _pixels(path: Path) -> torch.Tensor:
    """Return an image at the file's size, with the model's colour scaling."""
    from PIL import Image

    picture = Image.fromarray(av.Picture(path).pixels).resize((_SIDE, _SIDE), Image.Resampling.BICUBIC)
    mean, deviation = torch.tensor((0.485, 0.456, 0.406)), torch.tensor((0.229, 0.224, 0.225))
    values = torch.tensor(list(picture.tobytes()), dtype=torch.float32).reshape(_SIDE, _SIDE, 3) / 255
    return ((values - mean) / deviation).movedim(-1, 0)[None].contiguous()


def _runtime() -> Callable[[torch.Tensor], Any]:
    """Run the package's file up to the end of its backbone."""
    onnxruntime = importlib.import_module("onnxruntime")  # part of the benchmarks' own environment
    entry = av.CATALOGUE[_MODEL]
    assert entry.conversion is not None
    path = entry.conversion.source(entry.installed)
    last = next(node.outputs[0] for node in OnnxFile.open(path).nodes if _LAST in node.inputs)
    with tempfile.TemporaryDirectory() as folder:
        changed = Path(folder, "backbone.onnx")
        changed.write_bytes(path.read_bytes() + _asked_for(last))
        session = onnxruntime.InferenceSession(changed, providers=["CPUExecutionProvider"])
    (read,) = [one.name for one in session.get_inputs()]

    def run_file(pixels: torch.Tensor) -> Any:
        return session.run([last], {read: pixels.numpy()})[0][0]

    return run_file


def _asked_for(name: str) -> bytes:
    """Return bytes that, appended to a file, make an inner number an output; readers merge messages of one field.

    Source: https://protobuf.dev/programming-guides/encoding/#last-one-wins; the graph is field 7, its outputs are 12.
    """
    return _piece(7, _piece(12, _piece(1, name.encode())))


def _piece(field: int, content: bytes) -> bytes:
    assert len(content) < 128, "longer pieces take more bytes for their length"
    return bytes((field << 3 | 2, len(content))) + content


BENCHMARK = Benchmark(
    title="Pictures",
    method=(
        "First, `model.trace` of an image is measured against a plain pass of the same model, from the image to its "
        "last hidden state, reading the image included. This counts the CPU time of the whole process on one thread, "
        "in rounds of plain, captured, plain; each ratio is taken to the middle of its two plain turns. Each figure "
        "is the median of 7 rounds, with the smallest and the largest in brackets. Then, for two images of 224 × 224 "
        "pixels, the size of the file in the model's package, our recorded run is compared with onnxruntime's run of "
        "that file, up to the end of its backbone."
    ),
    run=run,
)
