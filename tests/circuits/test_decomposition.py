"""Numbers opened into what wrote them, against slices of W_O by hand, in many families, and in the story they tell."""

import threading

import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

import attention_viz as av
from attention_viz.circuits import opened
from tests.models.families import build, ids
from tests.models.own_code import OWN, build_own
from tests.shipped import MINILM, SMOLLM2, shipped

STORY = "When Mary and John went to the store, John gave a drink to"
FAMILIES = (
    "bert",
    "bert with a head",
    "albert",
    "electra",
    "modernbert",
    "t5 encoder",
    "gpt2",
    "gemma2",
    "gpt_oss",
    "qwen3",
    "gpt_neox",
    "opt",
    "jamba",
    "bloom",
    "roformer",
    "falcon",
)


@pytest.fixture(scope="module")
def story() -> tuple[av.AttentionModel, av.Trace]:
    model = shipped(SMOLLM2)
    return model, model.trace(STORY)


@pytest.fixture(scope="module")
def why(story: tuple[av.AttentionModel, av.Trace]) -> av.Decomposition:
    return av.decompose(*story, av.Logit("Mary", against="John"))


def heads_of(table: pd.DataFrame) -> pd.Series:
    return table[table["kind"] == "head"].groupby(["layer", "head"])["contribution"].sum()


def read(trace: av.Trace, model: av.AttentionModel) -> list[tuple[Tensor, Tensor]]:
    """Of each layer of plain transformers what enters W_O, (n, heads · d_k), and the layer itself, (n, d_model)."""
    found: list[tuple[Tensor, Tensor]] = []
    entered: list[Tensor] = []
    handles = []
    for layer in model.hf_model.model.layers:
        handles.append(layer.register_forward_pre_hook(lambda _m, args: entered.append(args[0][0])))
        handles.append(
            layer.self_attn.o_proj.register_forward_pre_hook(lambda _m, args: found.append((args[0][0], entered[-1])))
        )
    with torch.no_grad():
        model.hf_model(torch.tensor([trace.query_tokens().ids]))
    for handle in handles:
        handle.remove()
    return found


def slices(model: av.AttentionModel, layer: int, joined: Tensor) -> Tensor:
    """What each head adds to the stream: (head, n, d_model)."""
    weight = model.hf_model.model.layers[layer].self_attn.o_proj.weight
    count = model.heads["decoder"][layer]
    return torch.einsum("nhd,mhd->hnm", joined.unflatten(1, (count, -1)), weight.unflatten(1, (count, -1)))


def test_a_logit_is_what_slices_of_the_output_matrix_by_hand_say(
    story: tuple[av.AttentionModel, av.Trace], why: av.Decomposition
) -> None:
    model, trace = story
    hf = model.hf_model
    mary, john = (hf_id for (hf_id,) in (model.tokenizer.encode(f" {name}") for name in ("Mary", "John")))
    layers = read(trace, model)
    with torch.no_grad():
        states = []
        handle = hf.model.norm.register_forward_pre_hook(lambda _m, args: states.append(args[0][0, -1]))
        hf.model(torch.tensor([trace.query_tokens().ids]))
        handle.remove()
        root = (states[0].square().mean() + hf.model.norm.variance_epsilon).rsqrt()
        direction = (hf.lm_head.weight[mary] - hf.lm_head.weight[john]) * hf.model.norm.weight * root
        by_hand = torch.stack(
            [slices(model, number, joined)[:, -1] @ direction for number, (joined, _) in enumerate(layers)]
        )
    ours = torch.tensor(heads_of(why.table).to_numpy()).reshape(30, 9).float()
    torch.testing.assert_close(ours, by_hand, atol=2e-5, rtol=0)
    assert why.total == pytest.approx(float(trace.output[-1, mary] - trace.output[-1, john]), abs=1e-5)


def test_both_sides_of_a_score_are_what_slices_by_hand_say(story: tuple[av.AttentionModel, av.Trace]) -> None:
    model, trace = story
    layer, head, query, key = 18, 6, 9, 4
    found = av.decompose(model, trace, av.Score(layer, head, query, key))
    attention = model.hf_model.model.layers[layer].self_attn
    norm = model.hf_model.model.layers[layer].input_layernorm
    layers = read(trace, model)
    entering = layers[layer][1]
    call = trace.attention(layer)
    with torch.no_grad():
        cosine, sine = model.hf_model.model.rotary_emb(entering[None], torch.arange(len(entering))[None])
        for side, place, matrix, number in (
            ("query", query, attention.q_proj.weight[64 * head : 64 * (head + 1)], call.key[head // 3, key]),
            ("key", key, attention.k_proj.weight[64 * (head // 3) : 64 * (head // 3 + 1)], call.query[head, query]),
        ):
            root = (entering[place].square().mean() + norm.variance_epsilon).rsqrt()
            rows = torch.cat([slices(model, number, layers[number][0])[:, place] for number in range(layer)])
            made = (rows * norm.weight * root) @ matrix.T
            turned, _ = apply_rotary_pos_emb(made[None, None], made[None, None], cosine[:, [place]], sine[:, [place]])
            by_hand = turned[0, 0] @ number * call.scale
            table = found.table[found.table["side"] == side]
            ours = torch.tensor(heads_of(table).to_numpy()).float()
            torch.testing.assert_close(ours, by_hand, atol=2e-5, rtol=0)
    assert found.total == pytest.approx(
        float(call.query[head, query] @ call.key[head // 3, key]) * call.scale, abs=1e-4
    )


def test_the_story_of_the_indirect_object(why: av.Decomposition) -> None:
    heads = heads_of(why.table)
    told = {(23, 3): 2.86, (23, 0): 0.82, (23, 1): 0.78, (23, 7): 0.58, (24, 4): -1.07, (29, 1): 1.73, (20, 0): -0.26}
    assert {place: round(float(heads[place]), 2) for place in told} == told
    assert why.total == pytest.approx(6.12, abs=0.005)
    sums = why.table.groupby("kind")["contribution"].sum()
    assert float(sums["head"]) == pytest.approx(1.62, abs=0.01) and float(sums["mlp"]) == pytest.approx(4.54, abs=0.01)
    first = why.sources(23, 3).iloc[0]
    assert (first["token"], int(first["source"])) == ("ĠJohn", 9) and first["weight"] == pytest.approx(0.74, abs=0.01)


def test_a_head_s_row_opens_by_source_and_by_what_wrote_the_values(why: av.Decomposition) -> None:
    row = float(heads_of(why.table)[23, 3])
    assert float(why.sources(23, 3)["contribution"].sum()) == pytest.approx(row, abs=1e-5)
    behind = why.through(23, 3)
    assert float(behind["contribution"].sum()) == pytest.approx(row, abs=1e-5)
    assert behind["layer"].max() == 22  # nothing at or after the head itself


def test_the_word_before_writes_the_induction_head_s_key() -> None:
    model = shipped("induction")
    trace = model.trace("red cat blue dog red")
    assert trace.query_tokens().labels[-1] == trace.query_tokens().labels[1] == "red"
    found = av.decompose(model, trace, av.Score(1, 1, 5, 2))
    largest = {side: rows.iloc[0] for side, rows in found.table.groupby("side")}
    assert (largest["key"]["kind"], int(largest["key"]["layer"])) == ("head", 0)
    assert largest["query"]["kind"] == "embedding"
    before = int(largest["key"]["head"])
    assert float(trace.weights(0, before)[2, 1]) > 0.5  # it looks at the word before
    pair = found.joint(1).iloc[0]
    assert (pair["query_kind"], int(pair["key_head"])) == ("embedding", before)
    assert float(found.joint(10_000)["contribution"].sum()) == pytest.approx(found.total, rel=1e-4)


def test_a_score_beside_the_other_keys_is_less_their_mean(story: tuple[av.AttentionModel, av.Trace]) -> None:
    model, trace = story
    call = trace.attention(18)
    scores = call.scaled[6, 9, :10]
    others = torch.cat([scores[:4], scores[5:]])
    found = av.decompose(model, trace, av.Score(18, 6, 9, 4, relative=True))
    assert found.total == pytest.approx(float(scores[4] - others.mean()), abs=1e-4)
    for _, rows in found.table.groupby("side"):
        assert float(rows["contribution"].sum()) == pytest.approx(found.total, abs=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_rows_sum_to_the_number_in_every_family(family: str) -> None:
    model = av.wrap(_with_biases(build_own(family) if family in OWN else build(family)))
    trace = model.trace_ids(ids(9))
    width = trace.output.shape[1]
    direction = torch.randn(width, generator=torch.Generator().manual_seed(1))
    kinds = set[str]()
    for position in (-1, None):
        row = trace.output[-1] if position else trace.output.mean(dim=0)
        found = av.decompose(model, trace, av.Direction(direction, position))
        assert found.total == pytest.approx(float(row @ direction), rel=1e-4, abs=1e-5)
        _check_sums(found)
        kinds |= set(found.table["kind"])
    last = trace.layer_numbers()[-1]
    found = av.decompose(model, trace, av.Score(last, 1, 5, 3))
    call = trace.attention(last)
    assert found.total == pytest.approx(float(call.scores[1, 5, 3] * call.scale), rel=1e-4, abs=1e-6)
    _check_sums(found)
    assert {"head", "embedding", "mlp"} <= kinds and "other" not in kinds
    assert ("mixer" in kinds) == (family == "jamba")
    assert (found.softcap is not None) == (family == "gemma2")
    assert (found.position_bias != 0) == (family in ("t5 encoder", "bloom"))


def _check_sums(found: av.Decomposition) -> None:
    largest = float(found.table["contribution"].abs().max())
    assert abs(found.remainder) < 1e-5 * largest
    for _, rows in found.table.groupby("side"):
        assert float(rows["contribution"].sum()) == pytest.approx(found.total, abs=1e-5 * largest)


def _with_biases(model: nn.Module) -> nn.Module:
    """Fresh models have biases of 0 and gains of 1, under which a dropped one would not show."""
    torch.manual_seed(2)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            parameter.data += 0.3 * torch.randn_like(parameter) * (1 if "bias" in name else 0.5)
    return model


def test_an_encoder_decoder_names_the_stream_of_each_row() -> None:
    model = shipped("translation")
    trace = model.trace("the boy finds the key")
    row = trace.output[1]
    found = av.decompose(model, trace, av.Logit(int(row.argmax()), position=1))
    assert found.total == pytest.approx(float(row.max()), abs=1e-4)
    _check_sums(found)
    assert {"cross", "decoder"} == set(found.table["stream"].dropna())
    assert found.table.iloc[0]["stream"] == "cross"
    keys = av.decompose(model, trace, av.Score(0, 1, 1, 1, stream="cross")).table
    written = keys[(keys["side"] == "key") & (keys["kind"] != "bias")]
    assert set(written["stream"].dropna()) == {"encoder"}


def test_what_a_mean_of_an_embedder_says_is_opened_by_word() -> None:
    model = shipped(MINILM)
    trace, other = model.trace("The bank of the river was flooded"), model.trace("Water rose over the shore")
    vector = nn.functional.normalize(other.output.mean(dim=0), dim=0)
    found = av.decompose(model, trace, av.Direction(vector, None))
    assert found.total == pytest.approx(float(trace.output.mean(dim=0) @ vector), abs=1e-5)
    _check_sums(found)
    assert set(found.table["position"].dropna()) == set(range(len(trace.query_tokens())))


def test_an_edited_run_is_opened_as_it_ran() -> None:
    model = shipped("induction")
    text = "red cat blue dog red"
    trace = model.trace(text, edits=[av.Ablate(0, 1)])
    found = av.decompose(model, trace, av.Logit(int(trace.output[-1].argmax())))
    assert found.total == pytest.approx(float(trace.output[-1].max()), abs=1e-4)
    assert (0, 1) not in heads_of(found.table).index
    assert found.held == f"direct effect; norms and patterns held fixed; of an edited run: {trace.provenance.edits[0]}"
    unedited = av.decompose(model, model.trace(text), av.Logit(found.of.token))
    assert (0, 1) in heads_of(unedited.table).index
    assert "edited" not in unedited.held


def test_the_shared_models_keep_their_flags_and_hooks_and_threads_agree() -> None:
    model, other = shipped("induction"), shipped("translation")
    flags = [parameter.requires_grad for parameter in model.hf_model.parameters()]
    hooks = [len(module._forward_hooks) for module in model.hf_model.modules()]
    texts = ((model, "red cat blue dog red"), (model, "cat dog cat"), (other, "the red house"))
    traces = [(one, one.trace(text)) for one, text in texts]
    expected = [av.decompose(one, trace, av.Logit(7)).table for one, trace in traces]
    found: dict[int, pd.DataFrame] = {}
    threads = [
        threading.Thread(
            target=lambda at: found.update({at: av.decompose(*traces[at % 3], av.Logit(7)).table}), args=(at,)
        )
        for at in range(9)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for at in range(9):
        pd.testing.assert_frame_equal(found[at], expected[at % 3])
    assert flags == [parameter.requires_grad for parameter in model.hf_model.parameters()]
    assert hooks == [len(module._forward_hooks) for module in model.hf_model.modules()]
    assert all(parameter.grad is None for parameter in model.hf_model.parameters())


def test_an_opened_run_is_let_go_with_its_trace() -> None:
    model = shipped("induction")
    trace = model.trace("red cat blue dog red")
    av.decompose(model, trace, av.Logit(7))
    assert opened._last is not None
    del trace
    assert opened._last is None


@pytest.mark.parametrize(
    ("name", "of", "error", "words"),
    [
        (SMOLLM2, av.Logit("xylophonist"), av.UnusableText, r"3 tokens .*·xyl \+ ophon \+ ist"),
        (SMOLLM2, av.Logit(10**6), av.ShapeError, "0 to 49151"),
        (SMOLLM2, av.Logit("Mary", position=14), av.ShapeError, "-14 to 13"),
        (SMOLLM2, av.Score(30, 0, 1, 0), av.TraceError, "layer 30"),
        (SMOLLM2, av.Score(3, 9, 1, 0), av.ShapeError, "no head 9; layer 3 has 0 to 8"),
        (SMOLLM2, av.Score(3, 0, 0, 0, relative=True), av.ShapeError, "query 0 may attend to no other key"),
        (SMOLLM2, av.Direction(torch.ones(3)), av.ShapeError, r"must be \(49152,\)"),
        ("coreference", av.Logit("zebra"), av.UnusableText, "no token 'zebra'"),
        (MINILM, av.Logit(5), av.UnsupportedModel, "needs an unembedding, .*; use an av.Direction"),
    ],
)
def test_what_can_t_be_asked_is_refused_in_words(
    name: str, of: object, error: type[Exception], words: str, story: tuple[av.AttentionModel, av.Trace]
) -> None:
    model = shipped(name)
    trace = story[1] if name == SMOLLM2 else model.trace("the animal was tired")
    with pytest.raises(error, match=words):
        av.decompose(model, trace, of)


def test_traces_without_a_model_behind_them_are_refused(story: tuple[av.AttentionModel, av.Trace]) -> None:
    model, trace = story
    with pytest.raises(av.TraceError, match="got one of induction"):
        av.decompose(model, shipped("induction").trace("red cat"), av.Logit(5))
    with pytest.raises(av.TraceError, match="from a file or another trace"):
        av.decompose(model, trace.derived(), av.Logit(5))
    with pytest.raises(av.UnsupportedModel, match="scratch"):
        av.decompose(av.Scratch(), av.scratch("a b c"), av.Logit(5))


def test_a_model_that_changed_since_is_refused() -> None:
    model = av.wrap(build("gpt2"))
    trace = model.trace_ids(ids(6))
    with torch.no_grad():
        model.hf_model.transformer.h[0].mlp.c_fc.weight.mul_(1.5)
    with pytest.raises(av.TraceError, match="has changed since"):
        av.decompose(model, trace, av.Logit(5))


def test_a_model_whose_output_holds_nan_is_refused() -> None:
    model = av.wrap(build("llama"))
    with torch.no_grad():
        model.hf_model.model.layers[1].mlp.up_proj.weight[0, 0] = float("nan")
    with pytest.raises(av.UnsupportedModel, match=r"1 of \d+,?\d* numbers in model\.layers\.1\.mlp\.up_proj\.weight"):
        av.decompose(model, model.trace_ids(ids(6)), av.Logit(5))


def test_a_score_of_a_model_in_half_precision_is_refused_with_what_helps() -> None:
    model = av.load("induction", dtype="float16")
    trace = model.trace("moon cheese frog ring moon cheese")
    with pytest.raises(av.UnsupportedModel, match=r'load it with dtype="float32" instead of float16'):
        av.decompose(model, trace, av.Score(1, 0, 4, 1))
