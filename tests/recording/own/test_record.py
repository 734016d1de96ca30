"""`av.record()`: any torch module, recorded as it runs, gives what it gives by itself, and the trace is what ran."""

import math
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import attention_viz as av

WORDS = "the cat sat down now".split()
X = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))


class Grouped(nn.Module):
    """Four query heads that share two key heads, written by somebody who never heard of us."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.query, self.key, self.value = nn.Linear(8, 8), nn.Linear(8, 4), nn.Linear(8, 6)

    def forward(self, x: Tensor, **options: object) -> Tensor:
        query, key, value = (
            part(x).unflatten(-1, (heads, -1)).transpose(1, 2)
            for part, heads in ((self.query, 4), (self.key, 2), (self.value, 2))
        )
        return functional.scaled_dot_product_attention(query, key, value, enable_gqa=True, **options)  # pyright: ignore


def many(**options: object) -> nn.MultiheadAttention:
    torch.manual_seed(2)
    return nn.MultiheadAttention(8, 2, batch_first=True, **options).eval()  # pyright: ignore[reportArgumentType]


def by_hand(x: Tensor, module: Grouped, allowed: Tensor | None, bias: Tensor | None = None) -> Tensor:
    """The weights of row 1, written out in float64."""
    query = module.query(x)[1].double().unflatten(-1, (4, 2)).transpose(0, 1)
    key = module.key(x)[1].double().unflatten(-1, (2, 2)).transpose(0, 1).repeat_interleave(2, dim=0)
    logits = query @ key.mT / math.sqrt(2)
    logits = logits if bias is None else logits + bias
    return (logits if allowed is None else logits.masked_fill(~allowed, -math.inf)).softmax(-1).float()


HALF = torch.rand(2, 1, 5, 5, generator=torch.Generator().manual_seed(3)) > 0.4
HALF[..., 0] = True
SLOPE = -0.3 * (torch.arange(5)[:, None] - torch.arange(5)).abs().float()
FAR = SLOPE.masked_fill(torch.ones(5, 5).triu(1) > 0, torch.finfo(torch.float32).min)


@pytest.mark.parametrize(
    ("options", "allowed", "bias", "stream"),
    [
        ({}, None, None, "encoder"),
        ({"is_causal": True}, torch.ones(5, 5).tril() > 0, None, "decoder"),
        ({"attn_mask": HALF}, HALF[1], None, "encoder"),
        ({"attn_mask": SLOPE}, None, SLOPE, "encoder"),
        ({"attn_mask": FAR}, torch.ones(5, 5).tril() > 0, SLOPE, "decoder"),
    ],
    ids=["open", "causal", "boolean", "added", "added and blocked"],
)
def test_a_call_is_computed_by_ours_and_read_as_torch_reads_it(
    options: dict[str, object], allowed: Tensor | None, bias: Tensor | None, stream: str
) -> None:
    module = Grouped().eval()
    with torch.no_grad():
        plain = module(X, **options)
        with av.record() as run:
            ours = module(X, **options)
    trace = run.trace(WORDS, batch=1)
    assert torch.allclose(ours, plain, atol=1e-6)
    assert trace.streams == (stream,) and trace.head_count(0) == 4 and trace.query_tokens().labels == tuple(WORDS)
    with torch.no_grad():
        assert torch.allclose(trace.attention(0).weights, by_hand(X, module, allowed, bias), atol=1e-6)
    assert trace.fidelity.ok and trace.fidelity.weight_error < 1e-6
    assert trace.provenance.model == "Grouped" and trace.output.shape == (5, 12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_every_precision_is_recorded_in_its_own(dtype: torch.dtype) -> None:
    module = Grouped().to(dtype)
    with av.record() as run:
        module(X.to(dtype), is_causal=True)
    trace = run.trace(batch=0)
    assert trace.attention(0).weights.dtype == dtype and trace.fidelity.ok
    assert trace.query_tokens().labels == ("0", "1", "2", "3", "4")


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("graded", [True, False])
def test_multi_head_attention_hands_out_what_torchs_does(weighted: bool, average: bool, graded: bool) -> None:
    """Without gradients torch would take its fast path, in which no function of Python's is called."""
    module = many()
    options: dict[str, bool] = {"need_weights": weighted, "average_attn_weights": average}
    with torch.set_grad_enabled(graded):
        plain = module(X, X, X, **options)
        with av.record() as run:
            ours = module(X, X, X, **options)
        (alone, _), single = module(X[1], X[1], X[1], average_attn_weights=False), many()
        with av.record() as unbatched:
            single(X[1], X[1], X[1])
    assert torch.allclose(ours[0], plain[0], atol=1e-6)
    assert (ours[1] is None) == (plain[1] is None) == (not weighted)
    if weighted:
        assert ours[1].shape == plain[1].shape and torch.allclose(ours[1], plain[1], atol=1e-6)
    trace, theirs = run.trace(WORDS, batch=1), module(X, X, X, average_attn_weights=False)[1][1]
    assert torch.allclose(trace.attention(0).weights, theirs.detach(), atol=1e-6)
    assert torch.allclose(unbatched.trace(WORDS).attention(0).weights, theirs.detach(), atol=1e-6)
    assert torch.allclose(alone, plain[0][1], atol=1e-6)


def test_keys_that_a_module_adds_stand_behind_the_tokens() -> None:
    module = many(add_bias_kv=True, add_zero_attn=True, kdim=6, vdim=7)
    keys, values = torch.randn(2, 3, 6), torch.randn(2, 3, 7)
    theirs = module(X, keys, values, average_attn_weights=False)[1][0]
    with av.record() as run:
        module(X, keys, values)
    trace = run.trace(WORDS, list("uvw"), batch=0)
    assert trace.streams == ("cross",) and trace.key_tokens().labels == ("u", "v", "w", "[bias]", "[zero]")
    assert trace.key_tokens().special == (False, False, False, True, True)
    assert torch.allclose(trace.attention(0).weights, theirs.detach(), atol=1e-6)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_padding_and_masks_of_an_encoder_reach_the_trace() -> None:
    torch.manual_seed(4)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    module, padded = nn.TransformerEncoder(layer, 3).eval(), torch.tensor([[False] * 4 + [True], [False] * 5])
    with torch.no_grad():
        plain = module(X, src_key_padding_mask=padded)
        with av.record() as run:
            ours = module(X, src_key_padding_mask=padded)
    # Torch's fast path writes zeros where padding is; only real rows mean anything.
    assert torch.allclose(ours[~padded], plain[~padded], atol=1e-5)
    trace = run.trace(WORDS, batch=0)
    assert trace.layer_count() == 3 and [layer.label for layer in trace.layers["encoder"]] == ["0", "1", "2"]
    assert all(bool((trace.attention(one).weights[..., 4] == 0).all()) for one in range(3)) and trace.fidelity.ok
    assert list(run.table()["path"]) == [f"layers.{one}.self_attn" for one in range(3)]


def test_an_encoder_and_a_decoder_are_three_streams_with_their_own_words() -> None:
    torch.manual_seed(5)
    module, said = nn.Transformer(8, 2, 2, 2, 16, batch_first=True).eval(), torch.randn(2, 4, 8)
    mask = module.generate_square_subsequent_mask(4)
    plain = module(X, said, tgt_mask=mask)
    with av.record() as run:
        ours = module(X, said, tgt_mask=mask)
    assert torch.allclose(ours, plain, atol=1e-6)
    trace = run.trace(list("abcd"), WORDS, batch=1)
    assert trace.streams == ("encoder", "decoder", "cross")
    assert [trace.layer_count(stream) for stream in trace.streams] == [2, 2, 2]
    assert trace.query_tokens("encoder").labels == trace.key_tokens("cross").labels == tuple(WORDS)
    assert trace.query_tokens("decoder").labels == trace.query_tokens("cross").labels == tuple("abcd")
    assert bool((trace.weights(0, 0, "decoder").triu(1) == 0).all())
    assert trace.fidelity.ok and av.views.heatmap(trace, 1, 1, "cross").data


def test_what_looks_across_texts_of_one_length_is_told_by_hand_or_refused() -> None:
    module, same = nn.Transformer(8, 2, 1, 1, 16, batch_first=True).eval(), torch.randn(1, 5, 8)
    with av.record() as run:
        module(X[:1], same)
    with pytest.raises(av.ShapeError, match="streams="):
        run.trace(WORDS, list("abcde"))
    trace = run.trace(list("abcde"), WORDS, streams=["encoder", "decoder", "cross"])
    assert trace.query_tokens("encoder").labels == tuple(WORDS) != trace.query_tokens("decoder").labels
    with pytest.raises(av.ShapeError, match="3 calls"):
        run.trace(streams=["encoder"])


def test_calls_that_arent_of_the_same_tokens_are_chosen_by_number() -> None:
    module = Grouped()
    with av.record() as run:
        module(X)
        module(X[:, :3])
        module(X)
    assert repr(run) == "Recording(3 attention calls of Grouped)"
    with pytest.raises(av.ShapeError, match=r"3, 3.*calls=\["):
        run.trace(batch=0)
    assert run.trace(WORDS, batch=0, calls=[0, 2]).layer_count() == 2
    with pytest.raises(av.ShapeError, match="no call 3 was recorded; choose 0 to 2"):
        run.trace(calls=[3])


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda run: run.trace(WORDS), "2 rows; choose one with batch=0 to 1"),
        (lambda run: run.trace(WORDS, batch=2), "row 2.*0 to 1"),
        (lambda run: run.trace(WORDS[:4], batch=0), "5 labels.* 4"),
        (lambda run: run.trace("words", batch=0), "one str"),
        (lambda run: run.trace(leading="row"), "'row'"),
        (lambda run: run.trace(calls=[]), "calls is empty"),
    ],
)
def test_what_isnt_there_is_refused(ask: Callable[[av.Recording], object], message: str) -> None:
    with av.record() as run:
        Grouped()(X)
    with pytest.raises(av.AttentionVizError, match=message):
        ask(run)


def test_three_axes_are_read_only_as_somebody_says() -> None:
    with av.record() as run:
        functional.scaled_dot_product_attention(X, X, X)
    with pytest.raises(av.ShapeError, match="leading="):
        run.trace(WORDS)
    heads, row = run.trace(WORDS, leading="head"), run.trace(WORDS, leading="batch", batch=1)
    assert (heads.head_count(0), row.head_count(0)) == (2, 1)
    assert torch.equal(heads.weights(0, 1), row.weights(0, 0)) and row.fidelity.ok


def test_weights_dropped_at_random_are_refused() -> None:
    with pytest.raises(av.UnsupportedModel, match=r"MultiheadAttention drops.*eval\(\)"), av.record():
        nn.MultiheadAttention(8, 2, dropout=0.2)(X, X, X)
    with pytest.raises(av.UnsupportedModel, match="drops"), av.record():
        functional.scaled_dot_product_attention(X, X, X, dropout_p=0.1)
    with av.record() as run:  # the block that broke left nothing behind
        many()(X, X, X)
    assert len(run) == 1


def test_attention_by_hand_isnt_heard_and_says_what_to_do() -> None:
    with av.record() as run:
        (X @ X.mT).softmax(-1) @ X
    with pytest.raises(
        av.UnsupportedModel, match=r"softmax by itself: .*\(2, 5, 5\).*from_qkv or av.Trace.from_weights"
    ):
        run.trace()


def test_a_call_whose_result_isnt_torchs_is_never_drawn() -> None:
    with av.record() as run:
        Grouped()(X)
    object.__setattr__(run._calls[0].against, "error", 1e-3)
    with pytest.raises(av.UnsupportedModel, match=r"differs from our attention by 1\.0e-03"):
        run.trace(batch=0)


def test_gradients_go_through_as_they_do_without() -> None:
    module, found = Grouped(), list[Tensor]()
    for recorded in (True, False):
        x = X.clone().requires_grad_()
        if recorded:
            with av.record():
                module(x, is_causal=True).square().sum().backward()
        else:
            module(x, is_causal=True).square().sum().backward()
        assert x.grad is not None
        found.append(x.grad)
    assert torch.allclose(*found, atol=1e-5)


def test_what_is_kept_is_what_ran_whatever_is_written_later() -> None:
    x = X.clone()
    with av.record() as run:
        functional.scaled_dot_product_attention(x, x, x)
    before = run.trace(leading="head").attention(0).weights
    x.zero_()
    assert torch.equal(run.trace(leading="head").attention(0).weights, before)


def test_threads_hear_themselves_and_blocks_inside_each_other_both_hear() -> None:
    module, counts = Grouped(), dict[int, int]()
    ready = threading.Barrier(2)

    def work(calls: int) -> None:
        with av.record() as run:
            ready.wait()
            for _ in range(calls):
                module(X)
            ready.wait()
        counts[calls] = len(run)

    threads = [threading.Thread(target=work, args=(calls,)) for calls in (2, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == {2: 2, 5: 5}
    with av.record() as outer:
        module(X)
        with av.record() as inner:
            many()(X, X, X)
        outer.trace(batch=0, calls=[0]).attention(0).output  # noqa: B018 -- our own arithmetic, which isn't heard
    module(X)
    assert (len(outer), len(inner)) == (2, 1)


def test_a_compiled_module_runs_as_it_was_written() -> None:
    """In a program of its own, in which nothing was compiled before."""
    code = """
import torch, attention_viz as av
from torch.nn import functional
class Own(torch.nn.Module):
    def forward(self, x):
        return functional.scaled_dot_product_attention(x, x, x)
x = torch.randn(1, 2, 5, 4)
try:
    with av.record() as run:
        torch.compile(Own(), backend="eager")(x)
    run.trace()
except av.UnsupportedModel as error:
    print(error)
own = torch.compile(Own(), backend="eager")
own(x)
with av.record() as run:
    own(x)
print(len(run), run.trace().provenance.model, run.trace().fidelity.ok)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert "compiled while record() was open" in first and second == "1 Own True"


def last_key_alone(empty: int) -> Tensor:
    """A mask of torch's, True for blocked, of one head after the other: the first `empty` see no key."""
    return torch.cat([torch.ones(empty, 5, 5), torch.zeros(3 - empty, 5, 5)]).bool()


@pytest.mark.parametrize("empty", [0, 1, 3])
@pytest.mark.parametrize("average", [True, False])
def test_a_nan_of_torchs_own_is_passed_on_and_counted(empty: int, average: bool) -> None:
    module = nn.MultiheadAttention(3, 3, batch_first=True).eval()
    x, options = torch.randn(1, 5, 3), {"attn_mask": last_key_alone(empty), "average_attn_weights": average}
    plain = module(x, x, x, **options)
    with av.record() as run:
        ours = module(x, x, x, **options)
    for one, other in zip(ours, plain, strict=True):
        assert torch.allclose(one, other, atol=1e-6, equal_nan=True)
    assert bool(plain[0].isnan().any()) is bool(empty)
    assert run.table()[["error", "nan"]].iloc[0].tolist() == [pytest.approx(0, abs=1e-6), 5 * bool(empty)]
    trace = run.trace()
    assert trace.fidelity.ok and not trace.attention(0).weights.isnan().any()
    told = "MultiheadAttention: torch gives NaN for 5 rows with all keys masked"
    assert [note.partition(",")[0] for note in trace.provenance.notes] == ([told] if empty else [])


def test_a_call_that_is_given_nan_is_refused_by_where_it_came_from() -> None:
    first, second = (nn.MultiheadAttention(3, 3, batch_first=True).eval() for _ in range(2))
    x = torch.randn(1, 5, 3)
    with av.record() as run:
        y, _ = first(x, x, x, attn_mask=last_key_alone(1))
        second(y, y, y)
    assert run.table()["nan"].tolist() == [5, 5] and run.trace(calls=[0]).fidelity.ok
    with pytest.raises(av.UnsupportedModel, match=r"gets NaN from MultiheadAttention, where 5 rows"):
        run.trace()
    with av.record() as run:
        first(x * math.nan, x, x)
    with pytest.raises(av.UnsupportedModel, match="gets NaN, so its weights aren't numbers"):
        run.trace()
