"""Files that hold less of a run: some layers, terms or weights alone, rounded numbers, and the error that they tell."""

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import attention_viz as av
from attention_viz.errors import AttentionVizWarning, ShapeError, TraceError, UnsupportedModel
from attention_viz.ui.parts.badge import comparison_words

TEXT = "moon cheese frog ring moon cheese"
Places = list[tuple[int, int]]


@pytest.fixture(scope="module")
def model() -> av.AttentionModel:
    found = av.load("induction")
    assert isinstance(found, av.AttentionModel)
    return found


@pytest.fixture(scope="module")
def run(model: av.AttentionModel) -> av.Trace:
    return model.trace(TEXT)


def there_and_back(trace: av.Trace, folder: Path, **how: Any) -> av.Trace:
    trace.save(folder / "less.safetensors", **how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AttentionVizWarning)
        return av.Trace.load(folder / "less.safetensors")


def furthest(one: av.Trace, other: av.Trace) -> float:
    """The largest difference of any weight, head by head."""
    return max(
        float((one.weights(layer, head) - other.weights(layer, head)).abs().max())
        for layer in one.layer_numbers()
        for head in range(one.head_count(layer))
    )


@pytest.mark.parametrize("how", [{"dtype": "float16"}, {"what": "weights"}, {"what": "weights", "dtype": "float16"}])
def test_the_error_told_is_the_largest_difference_of_any_weight(
    how: dict[str, Any], run: av.Trace, tmp_path: Path
) -> None:
    path = tmp_path / "less.safetensors"
    run.save(path, **how)
    with pytest.warns(AttentionVizWarning, match="no weight differs by more than") as said:
        read = av.Trace.load(path)
    origin = read.provenance
    # Read back, all rows are computed at once, which may round the last digit otherwise than the rows that were told.
    assert origin.stored_weight_error == pytest.approx(furthest(run, read), abs=3e-7)
    assert origin.stored == ", ".join(how[name] for name in ("what", "dtype") if name in how)
    output = float((run.output - read.output).abs().max())
    assert origin.stored_output_error == pytest.approx(output)
    assert ("float16" in how.values()) == (output > 0) == (origin.stored_weight_error > 1e-5)
    told = f"no weight differs by more than {origin.stored_weight_error:.1e} from the run's"
    for words in (str(said[0].message), repr(read), read._repr_html_(), comparison_words(read)):
        assert told in words.replace("&#x27;", "'")
    assert read.weights(1, 1).dtype == torch.float32


def test_a_file_of_terms_gives_the_same_numbers_and_has_nothing_to_tell(run: av.Trace, tmp_path: Path) -> None:
    run.save(tmp_path / "terms.safetensors", what="terms")
    read = av.Trace.load(tmp_path / "terms.safetensors")
    assert torch.equal(read.attention(0).query, run.attention(0).query) and furthest(run, read) < 1e-6
    assert (read.provenance.stored, read.provenance.stored_weight_error) == ("terms", 0)
    assert read.layer(0).embeddings is None and run.layer(0).embeddings is not None
    run.save(tmp_path / "all.safetensors")
    sizes = [(tmp_path / f"{name}.safetensors").stat().st_size for name in ("terms", "all")]
    assert sizes[0] < 0.7 * sizes[1]


def test_rounding_twice_adds_up(run: av.Trace, tmp_path: Path) -> None:
    once = there_and_back(run, tmp_path, dtype="float16")
    twice = there_and_back(once, tmp_path, what="weights", dtype="float16")
    assert twice.provenance.stored == "float16, weights"
    assert twice.provenance.stored_weight_error >= once.provenance.stored_weight_error
    assert furthest(run, twice) <= twice.provenance.stored_weight_error + 1e-6


def test_what_needs_queries_and_keys_is_refused_of_a_file_of_weights(
    model: av.AttentionModel, run: av.Trace, tmp_path: Path
) -> None:
    read = there_and_back(run, tmp_path, what="weights")
    for ask in (
        lambda: av.norm_weighted(model, read, 0),
        lambda: av.attention_sinks(model, read),
        lambda: av.views.steps(read, 1, 1),
        lambda: av.views.queries_and_keys(read, 1, 1),
    ):
        with pytest.raises(TraceError, match=r"from weights alone"):
            ask()
    with pytest.raises(UnsupportedModel, match=r"needs the keys and values of a run to continue it, but .* only the w"):
        model.extend(read)
    own, found = av.head_table(run), av.head_table(read)
    assert (own - found).abs().max().max() < 1e-5
    assert model.probability(read, "frog") == pytest.approx(model.probability(run, "frog"))


def test_layers_keep_their_numbers_in_a_file_and_a_table(run: av.Trace, tmp_path: Path) -> None:
    read = there_and_back(run, tmp_path, layers=[1])
    assert read.layer_numbers() == (1,) and torch.equal(read.attention(1).key, run.attention(1).key)
    told: list[float] = []
    table = run.table(layers=[1], progress=told.append)
    assert table.equals(run.table(1)) and told == [0.25, 0.5, 0.75, 1.0]
    assert read.table().equals(run.table(1))
    with pytest.raises(TraceError, match="no layer 0"):
        read.table(layers=[0])
    with pytest.raises(ShapeError, match=r"not both; got layer=0 and layers=\[1\]"):
        run.table(0, layers=[1])
    for layers in ([], [1, 1], [7]):
        with pytest.raises(ShapeError, match="layer"):
            run.save(tmp_path / "none", layers=layers)


def test_what_can_t_be_kept_so_is_refused_and_nothing_is_written(run: av.Trace, tmp_path: Path) -> None:
    path = tmp_path / "none.safetensors"
    query = torch.randn(2, 3, 4)
    loud = av.Trace.from_qkv(query * 1e5, query, query)
    with pytest.raises(TraceError, match=r"query of layer 0|layer 0 .*over float16's limit of 65504"):
        loud.save(path, dtype="float16")
    resting = av.Trace.from_qkv(query, query, query, sinks=torch.zeros(2))
    with pytest.raises(TraceError, match=r'attention sinks.*save what="terms"'):
        resting.save(path, what="weights")
    with pytest.raises(ShapeError, match="'half'; choose 'all', 'terms', 'weights'"):
        run.save(path, what="half")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ShapeError, match="unknown dtype 'bfloat16'; choose 'float16', 'float32' or None"):
        run.save(path, dtype="bfloat16")  # pyright: ignore[reportArgumentType]

    def stop(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.save(path, progress=stop)
    assert not list(tmp_path.iterdir())


def test_blocked_cells_and_padding_come_back_as_they_were(model: av.AttentionModel, tmp_path: Path) -> None:
    padded = model.trace_ids(torch.tensor([[0, 4, 5, 6]]), torch.tensor([[0, 1, 1, 1]]))
    read = there_and_back(padded, tmp_path, what="weights")
    allowed, again = padded.attention(0).allowed, read.attention(0).allowed
    assert allowed is not None and again is not None and torch.equal(again, allowed)
    assert furthest(padded, read) <= 1e-6
    assert read.query_tokens().padding == padded.query_tokens().padding
