"""Heads and MLPs put from one text into another, compared with hooks that do the same on plain transformers."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import attention_viz as av
from attention_viz.circuits.patching.patching import Patching
from tests.models.families import VOCABULARY, build, ids
from tests.shipped import MINILM, plain, shipped

LENGTH = 9
LAST = av.Logit(17, against=23)


@dataclass(frozen=True)
class Family:
    """Where plain transformers keeps what is put: of a layer what joins the heads, and its MLP."""

    layers: Callable[[Any], Sequence[Any]]
    joining: Callable[[Any], nn.Module]
    mlp: Callable[[Any], nn.Module]


FAMILIES = {
    "gpt2": Family(lambda m: m.transformer.h, lambda one: one.attn.c_proj, lambda one: one.mlp),
    "llama": Family(lambda m: m.model.layers, lambda one: one.self_attn.o_proj, lambda one: one.mlp),
    "gemma2": Family(lambda m: m.model.layers, lambda one: one.self_attn.o_proj, lambda one: one.mlp),
    "opt": Family(lambda m: m.model.decoder.layers, lambda one: one.self_attn.out_proj, lambda one: one.fc2),
}
BERT = Family(lambda m: m.encoder.layer, lambda one: one.attention.output.dense, lambda one: one.output.dense)


def others() -> Tensor:
    """The ids with two of them replaced."""
    found = ids(LENGTH).clone()
    found[0, 2], found[0, 5] = 60, 71
    return found


def module_of(family: Family, model: Any, layer: int, head: int | None) -> nn.Module:
    one = family.layers(model)[layer]
    return family.mlp(one) if head is None else family.joining(one)


def by_hand(
    model: Any,
    family: Family,
    given: tuple[Tensor, Tensor],
    put: tuple[int, int | None, int | None],
    number: Callable[[Tensor], Tensor],
    heads: int,
    spots: Sequence[tuple[int, int]] = tuple((at, at) for at in range(LENGTH)),
) -> float:
    """What a part does to a number when it is put into the first text from the second, in the plain model."""
    layer, head, position = put
    module = module_of(family, model, layer, head)
    heard: list[Tensor] = []

    def keep(_module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        heard.append((args[0] if head is not None else output).detach().clone())

    def changed(tensor: Tensor) -> Tensor:
        mine = tensor.clone()
        rows, source = (one.reshape(-1, one.shape[-1]) for one in (mine, heard[0]))
        width = rows.shape[-1] // heads
        columns = slice(None) if head is None else slice(head * width, (head + 1) * width)
        for at, to in spots:
            if position in (None, at):
                rows[at, columns] = source[to, columns]
        return mine

    with torch.no_grad():
        before = number(model(given[0])[0][0])
        handle = module.register_forward_hook(keep)
        _ = model(given[1])
        handle.remove()
        handle = (
            module.register_forward_hook(lambda m, args, output: changed(output))
            if head is None
            else module.register_forward_pre_hook(lambda m, args: (changed(args[0]), *args[1:]))
        )
        after = number(model(given[0])[0][0])
        handle.remove()
    return float(after - before)


def last_logits(output: Tensor) -> Tensor:
    return (output[-1, 17] - output[-1, 23]).double()


@pytest.mark.parametrize("family", FAMILIES)
def test_heads_and_mlps_do_what_they_do_by_hooks_both_ways(family: str) -> None:
    hf = build(family)
    hf.set_attn_implementation("eager")
    known, texts = FAMILIES[family], (ids(LENGTH), others())
    model = av.wrap(hf)
    traces = tuple(model.trace_ids(one) for one in texts)
    before = {name: tensor.clone() for name, tensor in hf.state_dict().items()}
    heads = traces[0].head_count(0)
    for direction, way in (("noising", 1), ("denoising", -1)):
        found = av.patch(model, *traces, LAST, direction=direction)
        assert list(found.index) == [(layer, head) for layer in range(3) for head in range(heads)]
        expected = [by_hand(hf, known, texts[::way], (*one, None), last_logits, heads) for one in found.index]
        size = max(map(abs, expected))
        assert size > 1e-3
        assert found["effect"].tolist() == pytest.approx(expected, abs=2e-5 * max(size, 1.0), rel=1e-4)
        assert found.attrs["number"] == pytest.approx(float(last_logits(traces[::way][0].output)), abs=1e-4)
        assert found.attrs["other_number"] == pytest.approx(float(last_logits(traces[::way][1].output)), abs=1e-4)
        assert "total effect" in found.attrs["held"]
    mlps = av.patch(model, *traces, LAST, parts="mlps")
    expected = [by_hand(hf, known, texts, (layer, None, None), last_logits, heads) for layer in mlps.index]
    assert mlps["effect"].tolist() == pytest.approx(expected, abs=2e-5 * max(map(abs, expected)), rel=1e-4)
    spots = av.patch(model, *traces, LAST, by="position").loc[[(2, 1, LENGTH - 1), (0, 0, 5), (1, 3, 6), (0, 1, 0)]]
    expected = [by_hand(hf, known, texts, one, last_logits, heads) for one in spots.index]
    assert spots["effect"].tolist() == pytest.approx(expected, abs=2e-5 * size, rel=1e-4)
    # The model is as it was: its numbers, its flags, its hooks and its output.
    assert all(torch.equal(tensor, before[name]) for name, tensor in hf.state_dict().items())
    assert all(parameter.requires_grad and parameter.grad is None for parameter in hf.parameters())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in hf.modules())
    assert hf.config._attn_implementation == "eager"
    assert torch.equal(model.trace_ids(texts[0]).output, traces[0].output)


def test_the_estimate_is_the_slope_times_what_is_put_less_what_was_there() -> None:
    """In the limit of a small change, the effect and its estimate are the same: so one thousandth of a head is put."""
    hf = build("llama")
    model = av.wrap(hf)
    near = hf.get_input_embeddings().weight
    with torch.no_grad():
        near[71] = near[ids(LENGTH)[0, 5]] + 1e-3 * torch.randn(
            near.shape[1], generator=torch.Generator().manual_seed(1)
        )
    other = ids(LENGTH).clone()
    other[0, 5] = 71
    hf.double()
    model = av.wrap(hf)
    found = av.patch(model, model.trace_ids(ids(LENGTH)), model.trace_ids(other), LAST)
    gap = (found["effect"] - found["estimate"]).abs().max()
    assert 0 < gap < 0.02 * found["effect"].abs().max()


def test_an_encoder_is_asked_for_a_direction_of_its_mean_and_texts_of_other_lengths_are_paired_or_refused() -> None:
    model, hf = shipped(MINILM), plain(MINILM)
    texts = ("The bank of the river was flooded", "The bank of the old town was flooded")
    mine, yours = (model.trace(text) for text in texts)
    vector = torch.randn(mine.output.shape[1], generator=torch.Generator().manual_seed(3))
    asked = av.Direction(vector, position=None)
    with pytest.raises(av.ShapeError, match=r"9 and 10 tokens.*aligned=True"):
        _ = av.patch(model, mine, yours, asked)
    found = av.patch(model, *texts, asked, aligned=True)
    tokens = mine.query_tokens().labels, yours.query_tokens().labels
    # "river" stands where "old" does; "town" has no counterpart.
    spots = [(at, at if at < 6 else at + 1) for at in range(9)]
    assert all(tokens[0][at] == tokens[1][to] for at, to in spots if at != 5)
    given = tuple(torch.tensor([one.query_tokens().ids]) for one in (mine, yours))
    for layer, head in ((0, 3), (3, 11), (5, 0)):
        expected = by_hand(hf, BERT, given, (layer, head, None), lambda y: y.mean(0) @ vector, 12, spots)
        assert found.loc[(layer, head), "effect"] == pytest.approx(expected, abs=2e-5, rel=1e-3)
    assert found["effect"].corr(found["estimate"]) > 0.9


def test_threads_get_their_own_and_work_can_be_watched_and_stopped() -> None:
    model = av.wrap(build("llama"))
    first, second = (model.trace_ids(one) for one in (ids(LENGTH), others()))
    alone = [av.patch(model, *pair, LAST) for pair in ((first, second), (second, first))]
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda pair: av.patch(model, *pair, LAST), [(first, second), (second, first)] * 3))
    for at, one in enumerate(both):
        assert torch.allclose(torch.tensor(one.to_numpy()), torch.tensor(alone[at % 2].to_numpy()), atol=1e-5)
    told: list[tuple[int, int]] = []
    few = av.patch(model, first, second, LAST, confirm=4, report=lambda done, of: told.append((done, of)))
    assert told == [(0, 4), (4, 4)]
    ran = few["effect"].notna()
    assert ran.sum() == 4
    assert few["estimate"][ran].abs().min() >= few["estimate"][~ran].abs().max()
    made = Patching.begin(model, first, second, LAST, by="position")
    batches = made.batches()
    done = next(batches)
    batches.close()
    assert len(done) == made.at_once < len(made.puts)


def test_a_batch_that_gives_something_else_than_single_runs_is_not_believed() -> None:
    model = av.wrap(build("gpt2"))
    pair = model.trace_ids(ids(LENGTH)), model.trace_ids(others())
    expected = av.patch(model, *pair, LAST)["effect"]
    batches: list[int] = []

    def off(_module: nn.Module, _args: Any, logits: Tensor) -> Tensor:
        batches.append(len(logits))
        return logits + (1.0 if len(logits) > 1 else 0.0)

    model.hf_model.get_output_embeddings().register_forward_hook(off)
    assert av.patch(model, *pair, LAST)["effect"].tolist() == pytest.approx(expected.tolist(), abs=1e-5)
    assert max(batches) > 1


@pytest.mark.parametrize("family", [*FAMILIES, "gpt_neox", "qwen3"])
def test_a_batch_begins_at_the_first_layer_that_something_is_put_into(family: str) -> None:
    model = av.wrap(build(family))
    pair = model.trace_ids(ids(LENGTH)), model.trace_ids(others())
    together = Patching.begin(model, *pair, LAST)
    expected = next(together.batches())
    assert len(expected) == len(together.puts)
    made = Patching.begin(model, *pair, LAST)
    later = [put for put in made.puts if put.layer == 2]
    ran: list[int] = []
    # Modules inside a layer that is left out don't run.
    inner = next(made.bench.layers[0].module.children())
    inner.register_forward_hook(lambda *_: ran.append(1))
    found = next(made.batches(later))
    assert not ran and not made._whole
    assert [found[put] for put in later] == pytest.approx([expected[put] for put in later], abs=1e-5, rel=1e-4)
    # A layer that gives something else than in the run is noticed, and from then on all layers run.
    before, last, *more = made.bench.layers
    vars(made.bench)["layers"] = (before, replace(last, output=torch.randn(last.left.shape)), *more)
    assert list(next(made.batches(later)).values()) == pytest.approx(list(found.values()), abs=1e-5, rel=1e-4)
    assert ran and made._whole


def test_what_cannot_be_put_is_refused_by_name() -> None:
    model = av.wrap(build("llama"))
    text, other = model.trace_ids(ids(LENGTH)), model.trace_ids(others())
    edited = model.trace_ids(ids(LENGTH), edits=[av.Ablate(0, 0)])
    toy = av.load("translation")
    story = toy.trace("the boy finds the key")
    with pytest.raises(av.UnsupportedModel, match="encoder–decoder"):
        _ = av.patch(toy, story, story, LAST)
    with pytest.raises(av.TraceError, match="edited run"):
        _ = av.patch(model, text, edited, LAST)
    with pytest.raises(av.ShapeError, match=r"an av\.Logit, an av\.Probability or an av\.Direction"):
        _ = av.patch(model, text, other, av.Score(0, 0, 1, 0))  # pyright: ignore[reportArgumentType]
    with pytest.raises(av.ShapeError, match=f"0 to {VOCABULARY - 1}"):
        _ = av.patch(model, text, other, av.Logit(VOCABULARY))
    with pytest.raises(av.ShapeError, match="positions -9 to 8"):
        _ = av.patch(model, text, other, av.Logit(3, position=9))
    with pytest.raises(av.ShapeError, match=r"noising. or .denoising"):
        _ = av.patch(model, text, other, LAST, direction="up")  # pyright: ignore[reportArgumentType]
    with pytest.raises(av.ShapeError, match="confirm must be at least 0; got -1"):
        _ = av.patch(model, text, other, LAST, confirm=-1)
    with pytest.raises(av.UnsupportedModel, match="scratch"):
        _ = av.patch(av.load("scratch"), "a b", "a c", LAST)  # pyright: ignore[reportArgumentType]
    with pytest.raises(av.UnsupportedModel, match="unembedding, which all-MiniLM-L6-v2 lacks"):
        _ = av.patch(shipped(MINILM), "a bank", "a shore", LAST)
    same = av.patch(model, text, text, LAST)
    assert same["effect"].abs().max() < 1e-5
    assert not math.isnan(same["estimate"].sum())
