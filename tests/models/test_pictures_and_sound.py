"""The two real models that read pictures and hear, and what a trace of theirs can be asked."""

import copy
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, ViTConfig, ViTForImageClassification, WhisperConfig, WhisperForConditionalGeneration

import attention_viz as av
from attention_viz.analysis.slides import role_slides
from attention_viz.explorer.atlas_roles import pack_roles
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.models.model import AttentionModel
from tests.shipped import MINILM, shipped, shown

DINO, WHISPER = "dinov2-small", "whisper-tiny.en"


@pytest.fixture(scope="module")
def cat() -> av.Trace:
    return shown(DINO, "chelsea")


@pytest.fixture(scope="module")
def words() -> av.Trace:
    return shown(WHISPER, "window")


def test_a_pictures_trace_is_what_eager_attention_computes(cat: av.Trace) -> None:
    assert cat.fidelity.ok
    path = av.CATALOGUE[DINO].path
    plain = AutoModel.from_pretrained(path, attn_implementation="eager", local_files_only=True).eval()
    mean, deviation = torch.tensor((0.485, 0.456, 0.406)), torch.tensor((0.229, 0.224, 0.225))
    assert cat.seen.picture is not None
    pixels = ((cat.seen.picture / 255 - mean) / deviation).movedim(-1, 0)[None]
    with torch.no_grad():
        told = plain(pixel_values=pixels, output_attentions=True)
    assert cat.output == pytest.approx(told.last_hidden_state[0], abs=1e-2)  # what is seen is rounded to 8 bits
    for layer, weights in enumerate(told.attentions):
        assert torch.allclose(cat.attention(layer).weights, weights[0], atol=1e-3)


def test_a_picture_is_read_by_patches_with_a_class_token_before_them(cat: av.Trace) -> None:
    tokens = cat.query_tokens()
    assert cat.streams == ("picture",)
    assert (tokens.labels[0], tokens.special[0], tokens.place[0]) == ("[CLS]", True, None)
    assert tokens.place[1:] == tuple((row, column) for row in range(16) for column in range(16))
    assert tokens.labels[1 + 16 * 3 + 5] == "3,5"
    assert cat.provenance.picture == "chelsea.jpg, 451 × 300 pixels"
    assert cat.provenance.notes == ("Its middle was read, at 224 × 224 pixels.",)


def test_distances_and_neighbours_of_a_picture_go_by_place(cat: av.Trace) -> None:
    table = av.head_table(cat)
    weights = cat.weights(0, 0).double()
    row, column = torch.arange(256) // 16, torch.arange(256) % 16
    apart = ((row[:, None] - row) ** 2 + (column[:, None] - column) ** 2).double().sqrt()
    inner = weights[1:, 1:]
    by_hand = ((inner * apart).sum(-1) / inner.sum(-1)).mean()
    assert table.loc[(0, 0), "distance"] == pytest.approx(float(by_hand), rel=1e-5)
    left = [float(weights[1 + at, at]) for at in range(256) if at % 16]
    assert table.loc[(0, 0), "previous"] == pytest.approx(np.mean(left), rel=1e-5)
    assert table[["duplicate", "induction"]].isna().all(axis=None)
    assert table.attrs["missing"].keys() == {"duplicate", "induction"}
    above = [float(weights[1 + at, 1 + at - 16]) for at in range(16, 256)]
    assert table.loc[(0, 0), "above"] == pytest.approx(np.mean(above), rel=1e-5)
    assert table["above"].idxmax() == (3, 4)
    assert table["previous"].idxmax() == (2, 3)


def test_findings_and_roles_of_a_picture_speak_of_patches(cat: av.Trace) -> None:
    found = {one.kind: one for one in av.findings(cat)}
    assert found["previous"].text.startswith("Each patch looks at the one to its left: ")
    assert found["above"].text.startswith("Each patch looks at the one above it: ")
    link = found["link"]
    (row, column), (other_row, other_column) = (cat.query_tokens().place[at] for at in (link.query, link.key))
    assert max(abs(row - other_row), abs(column - other_column)) > 1
    roles = av.roles(cat)
    assert roles.loc[(2, 3), "role"] == "previous" and roles.loc[(3, 4), "role"] == "above"
    assert roles.loc[[(2, 3), (3, 4)], "label"].tolist() == ["left-patch head", "patch-above head"]
    assert roles.loc[(3, 4), "above"] == pytest.approx(av.head_table(cat).loc[(3, 4), "above"], rel=1e-3)
    assert roles[["same token", "induction", "punctuation"]].isna().all(axis=None)


def packed_roles(trace: av.Trace, stream: str) -> dict[str, Any]:
    rows = [(stream, layer) for layer in trace.layer_numbers(stream)]
    return pack_roles(trace, {stream: av.roles(trace, stream)}, rows)


def test_roles_are_called_by_what_is_read(cat: av.Trace, words: av.Trace) -> None:
    told = packed_roles(cat, "picture")
    labels = {one["name"]: one["label"] for one in told["roles"]}
    assert [labels[name] for name in ("previous", "next", "above")] == [
        "Left patch", "Right patch", "Patch above",
    ]  # fmt: skip
    assert not {"same token", "induction", "punctuation"} & labels.keys()
    asks = {one["name"]: one["asks"] for one in told["roles"]}
    assert asks["previous"] == "≥ 0.25 on the patch to the left" and asks["above"] == "≥ 0.25 on the patch above"
    assert not any("oken" in one["meaning"] for one in told["roles"])
    asked = [part for slide in role_slides(cat, av.roles(cat)) for part, _ in slide.ask]
    assert "Which head looks most at the patch above?" in asked and not any("word" in one for one in asked)
    heard = {one["name"]: one["label"] for one in packed_roles(words, "encoder")["roles"]}
    assert heard["previous"] == "Previous frame" and "above" not in heard
    said = {one["name"]: one["label"] for one in packed_roles(words, "decoder")["roles"]}
    assert said["previous"] == "Previous token" and "induction" in said


def test_four_of_the_six_heads_of_the_last_layer_look_at_the_astronaut() -> None:
    trace = shown(DINO, "astronaut")
    region = next(one for one in av.findings(trace) if one.kind == "region")
    assert (region.layer, region.query) == (11, 0)
    assert region.text.startswith("The class token looks at one region at the top in 4 of 6 heads: ")
    own = trace.weights(11, region.head)[0, 1:]
    assert region.key - 1 in own.topk(20).indices.tolist()


def test_a_head_is_silenced_and_a_region_blocked_in_a_picture(cat: av.Trace) -> None:
    model, picture = shipped(DINO), av.Picture(SAMPLES["chelsea"].path)
    region = [1 + 16 * row + column for row in range(7, 13) for column in range(2, 9)]
    allowed = torch.ones(257, 257, dtype=torch.bool)
    allowed[0, region] = False
    blind = model.trace(picture, edits=[av.Allow(allowed)])
    assert float(blind.attention(11).weights[:, 0, region].abs().max()) == 0
    assert float(blind.attention(0).weights[:, 1, region].max()) > 0
    assert not torch.allclose(blind.output[0], cat.output[0], atol=1e-2)
    silent = model.trace(picture, edits=[av.Ablate(11, 2)])
    assert torch.equal(silent.weights(10, 2), cat.weights(10, 2))
    assert not torch.allclose(silent.output[0], cat.output[0], atol=1e-3)


def test_a_picture_is_saved_with_its_trace(cat: av.Trace, tmp_path: Path) -> None:
    cat.save(tmp_path / "cat.safetensors", layers=[11])
    found = av.Trace.load(tmp_path / "cat.safetensors")
    assert found.query_tokens() == cat.query_tokens()
    assert found.provenance == cat.provenance
    assert found.seen.picture is not None
    assert torch.equal(found.seen.picture, cat.seen.picture)  # pyright: ignore[reportArgumentType]
    assert found.fidelity == cat.fidelity
    assert torch.equal(found.weights(11, 0), cat.weights(11, 0))


def test_tables_words_gradients_rollout_and_edits_of_a_picture_work(cat: av.Trace) -> None:
    assert av.merge_words(cat.only()).query_tokens().place == cat.query_tokens().place
    assert cat.table(0, 0).query_token.iloc[257] == "0,0"
    assert av.rollout(cat).shape == (12, 257, 257)
    raised = av.gradient(shipped(DINO), cat, layer=11)
    assert raised.shape == (6, 257, 257)
    assert float(raised.sum()) > 0
    edited = shipped(DINO).trace(av.Picture(SAMPLES["chelsea"].path), edits=[av.Block(0, 1)])
    assert float(edited.weights(11, 0)[0, 1]) == 0
    assert "before the edits" in edited.fidelity.reference


def test_gradients_of_a_direction_are_those_of_eager_attention_and_a_number_opens_into_what_wrote_it(
    cat: av.Trace,
) -> None:
    model, of = shipped(DINO), av.Direction(torch.linspace(-1, 1, 384), 0)
    assert isinstance(model, AttentionModel) and model.reader is not None
    path = av.CATALOGUE[DINO].path
    plain = AutoModel.from_pretrained(path, attn_implementation="eager", local_files_only=True).eval()
    tensors = model.reader.read(av.Picture(SAMPLES["chelsea"].path)).tensors
    told = plain(**tensors, output_attentions=True)
    y = told.last_hidden_state[0, 0] @ of.vector
    slopes = torch.autograd.grad(y, told.attentions)
    raised = av.gradient(model, cat, of=of)
    for ours, slope, weights in zip(raised, slopes, told.attentions, strict=True):
        expected = (slope * weights).clamp_min(0)[0].detach()
        assert expected.max() > 0
        assert torch.allclose(ours, expected, rtol=0, atol=2e-5 * float(expected.max()))
    assert not torch.equal(av.gradient(model, cat, layer=0, of=av.Direction(of.vector, None)), raised[0])
    with pytest.raises(av.errors.ShapeError, match=r"a direction must be \(384,\)"):
        av.gradient(model, cat, of=av.Direction(torch.ones(3)))
    with pytest.raises(av.UnsupportedModel, match="unembedding"):
        av.gradient(model, cat, of=(0, 7))
    opened = av.decompose(model, cat, of)
    assert opened.total == pytest.approx(float(y.detach()), rel=1e-4)
    assert opened.table.contribution.sum() == pytest.approx(opened.total, abs=1e-3)
    assert {"head", "mlp"} <= set(opened.table.kind)
    score = av.decompose(model, cat, av.Score(4, 1, 217, 220))
    by_hand = float(cat.attention(4).scaled[1, 217, 220])
    assert score.total == pytest.approx(by_hand, rel=1e-4)
    for _, side in score.table.groupby("side"):
        assert side.contribution.sum() == pytest.approx(by_hand, abs=1e-3 * abs(by_hand) + 1e-3)


def test_of_a_picture_s_classes_the_likeliest_or_any_other_can_be_asked_for() -> None:
    torch.manual_seed(3)
    config = ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=32, patch_size=8,
        num_labels=5,
    )  # fmt: skip
    plain = ViTForImageClassification._from_config(config, attn_implementation="eager").eval()
    inputs = {"pixel_values": torch.randn(1, 3, 32, 32)}
    model = av.wrap(copy.deepcopy(plain), inputs=inputs)
    trace, told = model.trace(inputs), plain(**inputs, output_attentions=True)
    best = int(told.logits[0].argmax())
    for chosen, of in ((best, None), ((best + 2) % 5, av.Direction(torch.eye(5)[(best + 2) % 5]))):
        slopes = torch.autograd.grad(told.logits[0, chosen], told.attentions, retain_graph=True)
        ours = av.gradient(model, trace, of=of)
        for one, slope, weights in zip(ours, slopes, told.attentions, strict=True):
            expected = (slope * weights).clamp_min(0)[0].detach()
            assert torch.allclose(one, expected, rtol=0, atol=2e-5 * float(expected.max()))


def test_a_sound_is_written_down_and_its_trace_is_what_eager_attention_computes(words: av.Trace) -> None:
    assert words.fidelity.ok
    assert words.provenance.target is not None
    assert words.provenance.target.strip() == "She opened the window and looked at the river."
    assert words.streams == ("encoder", "decoder", "cross")
    path = av.CATALOGUE[WHISPER].path
    plain = WhisperForConditionalGeneration.from_pretrained(path, attn_implementation="eager").eval()
    reader = shipped(WHISPER).reader
    assert reader is not None
    tensors = reader.read(av.Sound(SAMPLES["window"].path)).tensors
    ids = torch.tensor([words.query_tokens("decoder").numbers])
    with torch.no_grad():
        told = plain(**tensors, decoder_input_ids=ids, output_attentions=True)
    assert words.output == pytest.approx(told.logits[0], abs=1e-3)
    for layer in range(4):
        assert torch.allclose(words.attention(layer, "cross").weights, told.cross_attentions[layer][0], atol=1e-4)
        assert torch.allclose(words.attention(layer, "encoder").weights, told.encoder_attentions[layer][0], atol=1e-4)


def test_rows_of_a_sound_are_the_words_that_are_said_and_columns_seconds(words: av.Trace) -> None:
    said, heard = words.query_tokens("cross"), words.key_tokens("cross")
    assert said.labels[1:4] == ("ĠShe", "Ġopened", "Ġthe")
    assert len(heard) == 1500
    assert heard.place[:3] == ((0.0,), (0.02,), (0.04,))
    assert heard.ids is None
    assert words.seen.rate == 16_000


def test_neighbours_of_a_frame_are_the_frames_before_and_after_it(words: av.Trace) -> None:
    table, weights = av.head_table(words, "encoder"), words.weights(2, 3, "encoder").double()
    assert table.loc[(2, 3), "previous"] == pytest.approx(float(weights.diagonal(-1).mean()), rel=1e-5)
    assert table.loc[(2, 3), "next"] == pytest.approx(float(weights.diagonal(1).mean()), rel=1e-5)
    assert table.attrs["missing"].keys() == {"above", "duplicate", "induction"}
    assert av.head_table(words, "decoder").attrs["missing"].keys() == {"above"}


def test_what_a_sound_is_to_be_written_down_as_can_be_given() -> None:
    trace = shipped(WHISPER).trace(av.Sound(SAMPLES["window"].path), target="He closed it.", layers=[3])
    assert trace.query_tokens("cross").labels[1:] == ("ĠHe", "Ġclosed", "Ġit", ".", "<|endoftext|>")
    assert trace.query_tokens("decoder").labels[:2] == ("<|startoftranscript|>", "<|notimestamps|>")


def test_a_model_that_reads_something_else_says_what_it_reads() -> None:
    dino, text = shipped(DINO), shipped(MINILM)
    with pytest.raises(av.UnusableText, match=r"dinov2-small reads .*, not text; pass av\.Picture"):
        dino.trace("a cat")
    with pytest.raises(av.UnusablePicture, match="dinov2-small"):
        dino.trace(av.Sound(np.zeros(100), 16_000))
    with pytest.raises(av.UnusablePicture, match="reads text"):
        text.trace(av.Picture(SAMPLES["chelsea"].path))
    with pytest.raises(av.UnusableSound, match="reads text"):
        text.trace(av.Sound(np.zeros(100), 16_000))


def test_an_hour_is_cut_to_the_window_and_told() -> None:
    model = shipped(WHISPER)
    assert isinstance(model, AttentionModel)
    assert model.reader is not None
    given = model.reader.read(av.Sound(np.zeros(3600 * 1000), 1000))
    assert "reads 30 s at once" in " ".join(given.notes)
    assert "It is silent" in " ".join(given.notes)
    assert given.seconds == 30


def test_what_whisper_says_of_silence_is_told_to_be_made_up_and_no_word_has_a_time() -> None:
    model = shipped(WHISPER)
    trace = model.trace(av.Sound(np.zeros(16_000), 16_000))
    assert any("probability of no speech" in line for line in trace.provenance.notes)
    table = av.word_times(model, trace)
    assert table[["start", "end"]].isna().all(axis=None)
    assert table.attrs["heads"] == []


def test_the_words_of_a_sound_have_their_times(words: av.Trace) -> None:
    table = av.word_times(shipped(WHISPER), words)
    assert list(table.word) == ["She", "opened", "the", "window", "and", "looked", "at", "the", "river."]
    # What espeak-ng itself says of when it spoke each word of this sentence.
    spoken = np.array([0.0, 0.192, 0.637, 0.759, 1.348, 1.578, 1.916, 2.096, 2.225])
    assert np.abs(table.start - spoken).mean() <= 0.06
    assert table.start[3] <= 0.9 and table.end[3] >= 1.2, "“window” lasts as long as it sounds"
    assert (table.end > table.start).all()
    assert (table.start.iloc[1:].to_numpy() >= table.end.iloc[:-1].to_numpy()).all()


def test_a_head_is_found_that_attends_to_a_third_of_the_word_that_it_writes_next(words: av.Trace) -> None:
    found = next(one for one in av.findings(words) if one.kind == "heard")
    table = av.word_times(shipped(WHISPER), words)
    row = words.weights(found.layer, found.head, "cross")[found.query].double().numpy()
    word = next(at for at, text in enumerate(table.word) if f"“{text.strip('.')}”" in found.text)
    edges = np.linspace(table.start[word], table.end[word], 4)
    middles = np.arange(len(row)) * 0.02 + 0.01
    shares = [row[(middles >= one) & (middles < other)].sum() for one, other in itertools.pairwise(edges)]
    assert found.strength == pytest.approx(max(shares), abs=1e-6) and found.strength >= 0.6
    assert found.key == row.argmax()
    third = ("first", "middle", "last")[int(np.argmax(shares))]
    assert found.text.startswith("Before “") and f"it attends to the word’s {third} third: " in found.text


def test_silence_before_and_within_a_sound_belongs_to_no_word() -> None:
    """Three seconds of it before the first word, and two before “and”, by espeak-ng's own times of its words."""
    sound, model = av.Sound(SAMPLES["window"].path), shipped(WHISPER)
    rate, samples = sound.rate, np.array(sound.samples)
    cut = round(1.348 * rate)
    parts = [np.zeros(3 * rate), samples[:cut], np.zeros(2 * rate), samples[cut:]]
    table = av.word_times(model, model.trace(av.Sound(np.concatenate(parts).astype(np.float32), rate)))
    assert list(table.word) == ["She", "opened", "the", "window", "and", "looked", "at", "the", "river."]
    spoken = np.array([3.0, 3.192, 3.637, 3.759, 6.348, 6.578, 6.916, 7.096, 7.225])
    assert table.start[0] == pytest.approx(3.0, abs=0.1)
    assert np.median(np.abs(table.start - spoken)) <= 0.1
    assert table.end[3] <= 4.4 and table.start[4] >= 6.3, "no word lasts through the pause"


def test_a_layer_that_only_the_decoder_has_is_kept_alone() -> None:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"d_model": 16, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "num_mel_bins": 8}
    layers: dict[str, Any] = {"encoder_layers": 2, "decoder_layers": 4, "max_source_positions": 8, "vocab_size": 60}
    heads: dict[str, Any] = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    ids: dict[str, Any] = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 3}
    none: dict[str, Any] = {"suppress_tokens": None, "begin_suppress_tokens": None}
    model = WhisperForConditionalGeneration(WhisperConfig(**sizes, **layers, **heads, **ids, **none)).eval()
    inputs = {"input_features": torch.randn(1, 8, 16), "decoder_input_ids": torch.tensor([[3, 4, 5]])}
    trace = av.wrap(model, inputs=inputs).trace(inputs, layers=[3])
    assert trace.attention_streams == ("decoder", "cross") and trace.fidelity.ok
