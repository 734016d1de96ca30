"""A folder's model is run once, in a bounded process, before the probe runs it in the process of everybody."""

import functools
import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook

import attention_viz as av
from attention_viz.errors import LoadCancelled
from attention_viz.models.loading import load_folder as loading
from attention_viz.models.loading.dry_run import dry_run
from attention_viz.models.loading.load_folder import load_folder
from attention_viz.models.loading.verdicts import verdict_of
from attention_viz.sources.bounded.counting import Bounds
from attention_viz.sources.bounded.limits import Limits
from attention_viz.sources.folders import check_folder
from tests.models.families import build

SMALL = {"vocab_size": 50, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}


def saved(folder: Path, family: str, sizes: Mapping[str, Any], **changes: object) -> Path:
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**sizes)
    getattr(transformers, f"{family}Model")(config).save_pretrained(folder)
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder


def longformer(folder: Path) -> None:
    saved(folder, "Longformer", SMALL | {"attention_window": 4}, attention_window=[60000])


def longt5(folder: Path) -> None:
    sizes = {"vocab_size": 50, "d_model": 8, "d_kv": 8, "d_ff": 8, "num_layers": 1, "num_heads": 1, "local_radius": 4}
    saved(folder, "LongT5", sizes, local_radius=20000)


def reformer(folder: Path) -> None:
    sizes = {"vocab_size": 50, "hidden_size": 8, "num_attention_heads": 1, "feed_forward_size": 8, "num_buckets": 2}
    sizes |= {"attention_head_size": 8, "attn_layers": ["lsh"], "axial_pos_embds": False, "lsh_attn_chunk_length": 4}
    saved(folder, "Reformer", sizes, num_hashes=10**8)


def albert(folder: Path) -> None:
    saved(folder, "Albert", SMALL | {"embedding_size": 8, "inner_group_num": 10}, num_hidden_layers=10000)


def funnel(folder: Path) -> None:
    sizes = {"vocab_size": 50, "d_model": 8, "n_head": 1, "d_head": 8, "d_inner": 8, "block_sizes": [1, 1]}
    saved(folder, "Funnel", sizes, block_repeats=[10000, 1])


@pytest.mark.parametrize("spoil", [longformer, longt5, reformer, albert, funnel])
def test_what_takes_long_or_much_to_run_is_refused_before_it_is_loaded(
    spoil: Callable[[Path], None], tmp_path: Path, unread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(tmp_path)
    limits = Limits(memory=400_000_000, seconds=60, processor=1, answer=1_000_000)
    monkeypatch.setattr(loading, "verdict_of", functools.partial(verdict_of, limits=limits))
    message = r"config\.json takes (longer than 1 seconds|more than 400 MB of memory)|in one step"
    with pytest.raises(av.UnsupportedModel, match=message) as refused:
        load_folder(tmp_path, "absurd")
    assert "can't load absurd" in str(refused.value)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (Bounds(steps=20), r"for 11 tokens, its config\.json needs more than 20 steps"),
        (Bounds(at_once=1), "more than .* in one step"),
        (Bounds(together=1), "in all steps together"),
    ],
)
@pytest.mark.parametrize("family", ["bert", "llama", "gpt_oss"])
def test_each_bound_is_held(bounds: Bounds, message: str, family: str, tmp_path: Path) -> None:
    build(family).save_pretrained(tmp_path)

    class Bare(Bounds):
        """Without what the weights allow for, beside which a tiny text is small."""

        def with_weights(self, size: int) -> Bounds:
            return self

    with pytest.raises(av.UnsupportedModel, match=message):
        dry_run(check_folder(tmp_path, "one"), bounds=Bare(bounds.at_once, bounds.together, bounds.steps))


def test_a_larger_model_may_make_more() -> None:
    assert Bounds(10, 20, 30).with_weights(100) == Bounds(200, 1020, 30)
    assert Bounds(10, 20, 30).with_weights(1) == Bounds(10, 30, 30)


def test_a_load_that_nobody_waits_for_ends_while_its_model_is_probed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build("bert").save_pretrained(tmp_path)
    probed, asks = threading.Event(), list[int]()
    of = loading.AttentionModel.of

    def watched(*args: Any) -> Any:
        probed.set()
        return of(*args)

    def cancelled() -> bool:
        asks.append(probed.is_set())
        return sum(asks) > 2  # the second layer's attention

    monkeypatch.setattr(loading.AttentionModel, "of", watched)
    begun = list[nn.Module]()
    hook = register_module_forward_pre_hook(lambda module, _: begun.append(module) if sum(asks) > 2 else None)
    with pytest.raises(LoadCancelled, match="loading one was cancelled"):
        load_folder(tmp_path, "one", cancelled=cancelled)
    hook.remove()
    assert sum(asks) == 3 and not begun


def runs_until_refused(error: Exception, message: str) -> int:
    """How often a model runs that raises an error each time."""
    model: Any = build("bert")
    runs = list[int]()

    def fail(*_: object) -> None:
        runs.append(1)
        raise error

    model.encoder.register_forward_pre_hook(fail)
    with pytest.raises(av.UnsupportedModel, match=message):
        av.wrap(model)
    return len(runs)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you …")])
def test_what_took_all_memory_is_not_tried_again(error: Exception) -> None:
    assert runs_until_refused(error, "takes more memory than there is") == 1
    assert runs_until_refused(ValueError("another"), "doesn't run on text alone") > 1


def stored(folder: Path, dtype: torch.dtype) -> Path:
    build("bert").save_pretrained(folder)
    path = folder / "model.safetensors"
    tensors = load_file(path)
    key = "encoder.layer.1.output.dense.weight"
    tensors[key] = tensors[key].to(dtype)
    save_file(tensors, path, metadata={"format": "pt"})
    return folder


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (torch.bool, "BOOL"),
        (torch.uint16, "U16"),
        (torch.int64, "I64"),
        (torch.float8_e4m3fn, "F8_E4M3"),
        (torch.complex64, "C64"),
    ],
)
@pytest.mark.filterwarnings("ignore:Casting complex")
def test_weights_that_are_stored_as_something_else_are_refused(dtype: torch.dtype, name: str, tmp_path: Path) -> None:
    message = rf"encoder\.layer\.1\.output\.dense\.weight of .* is stored as {name}, not as one of F64, F32"
    with pytest.raises(av.UnsupportedModel, match=message):
        load_folder(stored(tmp_path, dtype), "odd")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_weights_may_be_stored_in_each_precision(dtype: torch.dtype, tmp_path: Path) -> None:
    assert load_folder(stored(tmp_path, dtype), "plain").trace_ids(torch.tensor([[5, 6, 7]])).fidelity.ok
