"""Measure recording on a GPU: a model of an 8B Llama's shape with random weights, in bfloat16, up to 32,768 tokens.

Usage: python -m scripts.on_gpu [--seconds 460] [--small]

It prints a Markdown table for docs/performance.md, and takes at most about eight minutes on a GPU with 80 GB. What
there is no time for is named. `--small` runs the same steps with a small model on the CPU, to show that they work.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

import attention_viz as av
from attention_viz.trace.ahead import unsaid

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["Measured", "Meter", "main", "measure", "table"]

LENGTHS, SMALL = (2048, 8192, 32_768), (64, 256, 768)
# Rows of one head's weights that are read, and new tokens.
_ROWS, _MORE = 512, 16
# Above so many tokens a page would take longer than the other steps together.
_MOST_IN_A_PAGE = 8192
_COLUMNS = ("tokens", "step", "seconds", "÷ plain", "device memory above the weights", "memory of the process", "note")


@dataclass(frozen=True)
class Measured:
    """One step: its seconds, None if it didn't run, and the most bytes that it took."""

    tokens: int
    step: str
    seconds: float | None
    ratio: float | None = None
    device_bytes: int | None = None
    note: str = ""

    @property
    def row(self) -> list[str]:
        """The step as a row of the table."""
        gigabytes = "–" if self.device_bytes is None else f"{self.device_bytes / 1e9:.2f} GB"
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        seconds = "–" if self.seconds is None else f"{self.seconds:.3f}"
        ratio = "–" if self.ratio is None else f"{self.ratio:.3f}"
        return [f"{self.tokens:,}", self.step, seconds, ratio, gigabytes, f"{resident / 1e9:.2f} GB", self.note]


@dataclass
class Meter:
    """Times steps until a deadline, with the device's memory above what was there before."""

    device: torch.device
    deadline: float
    rows: list[list[str]] = field(default_factory=list[list[str]])
    _weights: int = 0

    def __post_init__(self) -> None:
        """Note the memory that the weights take."""
        self._weights = torch.cuda.memory_allocated(self.device) if self._is_cuda else 0

    @property
    def _is_cuda(self) -> bool:
        return self.device.type == "cuda"

    def time(
        self, tokens: int, step: str, run: Callable[[], Any], *, times: int = 1, base: float | None = None
    ) -> tuple[Any, float | None]:
        """Run a step, `times` times after one that isn't counted if that is more than 1; return its result and time."""
        if time.monotonic() > self.deadline:
            self._add(Measured(tokens, step, None, note="not run: no time was left"))
            return None, None
        result, note = None, ""
        spent = list[float]()
        if self._is_cuda:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self.device)
        try:
            for _ in range(times + (times > 1)):
                result = None  # the one before gives its memory back first
                self._wait()
                began = time.perf_counter()
                result = run()
                self._wait()
                spent.append(time.perf_counter() - began)
        except (av.AttentionVizError, RuntimeError) as error:
            note = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            self._add(Measured(tokens, step, None, note=note))
            return None, None
        seconds = min(spent[1:] or spent)
        most = torch.cuda.max_memory_allocated(self.device) - self._weights if self._is_cuda else None
        note = result if isinstance(result, str) else ""
        self._add(Measured(tokens, step, seconds, None if base is None else seconds / base, most, note))
        return result, seconds

    def _add(self, measured: Measured) -> None:
        self.rows.append(measured.row)
        print("  ".join(measured.row), flush=True)

    def _wait(self) -> None:
        if self._is_cuda:
            torch.cuda.synchronize(self.device)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return the Markdown table of the steps."""
    lines = [_COLUMNS, ["--:", "---", "--:", "--:", "--:", "--:", "---"], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _model(device: torch.device, *, small: bool, longest: int) -> "PreTrainedModel":
    """Make the model on the device."""
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes: dict[str, Any] = (
        {"vocab_size": 500, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
        if small
        else {"vocab_size": 128_256, "hidden_size": 4096, "intermediate_size": 14_336, "num_hidden_layers": 32}
    )
    heads: dict[str, Any] = {"num_attention_heads": 4 if small else 32, "num_key_value_heads": 2 if small else 8}
    config = LlamaConfig(**sizes, **heads, max_position_embeddings=longest + _MORE)
    config.eos_token_id = None
    before = torch.get_default_dtype()
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    try:
        with device:
            model = LlamaForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(before)
    model.generation_config.eos_token_id = None
    return model


def measure(device: torch.device, lengths: Sequence[int], seconds: float, *, small: bool) -> list[list[str]]:
    """Run every step at every length; return the table's rows."""
    deadline = time.monotonic() + seconds
    hf_model: Any = _model(device, small=small, longest=max(lengths))
    model = av.wrap(hf_model)
    meter = Meter(device, deadline)
    for tokens in lengths:
        _steps(meter, hf_model, model, tokens)
    return meter.rows


def _steps(meter: Meter, hf_model: Any, model: av.AttentionModel, tokens: int) -> None:
    ids = torch.randint(3, hf_model.config.vocab_size, (1, tokens), generator=torch.Generator().manual_seed(tokens))
    there = ids.to(meter.device)

    def plain() -> object:
        with torch.no_grad():
            return hf_model(input_ids=there, use_cache=False, logits_to_keep=1).logits

    _, base = meter.time(tokens, "a plain pass", plain, times=3)
    trace, _ = meter.time(tokens, "capture", lambda: model.trace_ids(ids), times=3, base=base)
    if trace is None:
        return
    middle = hf_model.config.num_hidden_layers // 2

    def one_head() -> object:
        return trace.attention(middle).tile(1, slice(max(0, tokens - _ROWS), tokens), slice(0, tokens))

    meter.time(tokens, f"{min(_ROWS, tokens)} rows of one head", one_head)
    meter.time(tokens, "verify", lambda: _in_words(trace.fidelity), base=base)
    if tokens <= _MOST_IN_A_PAGE:
        meter.time(tokens, "a page's file", lambda: _page(trace))

    def theirs() -> object:
        mask = torch.ones_like(there)
        return hf_model.generate(there, attention_mask=mask, max_new_tokens=_MORE, do_sample=False, pad_token_id=0)

    _, usual = meter.time(tokens, f"transformers' generate, {_MORE} tokens", theirs)
    made: Callable[[], object] = lambda: sum(1 for _ in model.extend(trace, _MORE))  # noqa: E731
    meter.time(tokens, f"{_MORE} tokens after the capture, with their traces", made)
    if usual is not None and base is not None:
        print(f"transformers' generate without its first pass: {usual - base:.3f} s", flush=True)


def _in_words(fidelity: av.Fidelity) -> str:
    errors = (fidelity.output_error, fidelity.weight_error)
    output, weights = ("–" if one is None else f"{one:.1e}" for one in errors)
    return f"{'ok' if fidelity.ok else 'not ok'}: output {output}, weights {weights}, allowed {fidelity.bound:.0e}"


def _page(trace: av.Trace) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        av.explore(trace).save_html(path)
        return f"{path.stat().st_size / 1e6:.1f} MB"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m scripts.on_gpu", description="Measure recording on a GPU.")
    parser.add_argument("--seconds", type=float, default=460, help="begin no step after so many seconds")
    parser.add_argument("--small", action="store_true", help="a small model on the CPU, to see that it works")
    options = parser.parse_args(arguments)
    if not options.small and not torch.cuda.is_available():
        parser.error("torch sees no GPU here; run this where there is one, or pass --small")
    device = torch.device("cpu" if options.small else "cuda")
    with unsaid():
        rows = measure(device, SMALL if options.small else LENGTHS, options.seconds, small=options.small)
    name = "a small model on the CPU" if options.small else torch.cuda.get_device_name(device)
    print(f"\nOn {name}, torch {torch.__version__}, bfloat16:\n\n{table(rows)}")


if __name__ == "__main__":
    main()
