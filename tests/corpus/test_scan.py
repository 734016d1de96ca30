"""A scan's numbers are those of single traces, whoever computes them, in whatever order, and however often it stops."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy
import pandas
import pytest

import attention_viz as av
from attention_viz.analysis.metrics import metrics_in
from attention_viz.analysis.roles import EVEN
from attention_viz.corpus import scanning
from attention_viz.corpus.folder import Folder
from attention_viz.corpus.tally import STRONGEST
from attention_viz.trace.tokens import Tokens
from tests.analysis.test_metrics import naive
from tests.corpus.texts import PROSE, TRANSLATED, by_lot
from tests.shipped import shipped

METRICS = list(metrics_in("softmax"))
# Texts in a chunk while scans stop and go on here; those that are killed have chunks as they are.
CHUNK = 16
CROSS = ("entropy", "confidence", "first")


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "CHUNK", CHUNK)


class StoppedError(Exception):
    """What a person's Stop raises."""


def files_of(out: Path) -> dict[str, bytes]:
    """What a scan left, but for what only says that nobody writes it."""
    return {path.name: path.read_bytes() for path in out.iterdir() if path.name != ".lock"}


def _cross(weights: numpy.ndarray, queries: Tokens) -> list[float]:
    """The metrics in `CROSS` of a head whose keys are another text's."""
    rows = [weights[at].astype(float) for at in queries.counted]
    entropy = [-sum(one * numpy.log(one) for one in row if one > 0) for row in rows]
    return [float(numpy.mean(one)) for one in (entropy, [max(row) for row in rows], [row[0] for row in rows])]


def stop_after(texts: int) -> Callable[[av.Progress], None]:
    def told(progress: av.Progress) -> None:
        if progress.texts >= texts:
            raise StoppedError

    return told


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("all-MiniLM-L6-v2", PROSE),
        # "it" is one token alone, without a special one beside it.
        ("SmolLM2-135M-Instruct", PROSE[:3]),
        ("induction", by_lot(40)),
        ("translation", TRANSLATED),
    ],
    ids=["encoder", "decoder", "toy", "encoder–decoder"],
)
def test_the_numbers_are_those_of_single_traces_added_up_cell_by_cell(
    name: str, texts: Sequence[str], tmp_path: Path
) -> None:
    model = shipped(name)
    found = av.scan(model, texts, tmp_path)
    traces = [model.trace(text) for text in texts]
    for stream in found.streams:
        scanned, roles = found.of(stream).table, found.of(stream).roles
        if stream != "cross":
            for layer, head in (tuple(map(int, scanned.index[at])) for at in (0, -1)):
                rows = [naive(t.weights(layer, head, stream).numpy(), t.query_tokens(stream)) for t in traces]
                own = pandas.DataFrame(rows)
                told = scanned.loc[(layer, head)]
                assert told[METRICS].to_numpy() == pytest.approx(own.mean().to_numpy(), abs=2e-5, nan_ok=True)
                spread = told[[f"{metric}_spread" for metric in METRICS]].to_numpy()
                assert spread == pytest.approx(own.std(ddof=0).to_numpy(), abs=2e-5, nan_ok=True)
        else:
            layer, head = map(int, scanned.index[-1])
            told = scanned.loc[(layer, head), list(CROSS)]
            rows = [_cross(t.weights(layer, head, stream).numpy(), t.query_tokens(stream)) for t in traces]
            assert told.to_numpy() == pytest.approx(numpy.mean(rows, axis=0), abs=2e-5)
        whole = av.head_table(traces, stream)
        pandas.testing.assert_frame_equal(scanned, whole, atol=2e-5, check_dtype=False)
        own_roles = av.roles(traces, stream)
        assert roles["role"].tolist() == own_roles["role"].tolist()
        assert roles["label"].tolist() == own_roles["label"].tolist()
        assert roles["role first"].to_numpy() == pytest.approx(own_roles["first"].to_numpy(), abs=2e-5, nan_ok=True)


def test_deciles_and_how_often_a_role_holds_are_those_of_single_traces(tmp_path: Path) -> None:
    model, texts = shipped("induction"), by_lot(50)
    found = av.scan(model, texts, tmp_path)
    tables = [av.head_table(model.trace(text)) for text in texts]
    known = numpy.array([table.loc[(1, 1), "induction"] for table in tables])
    known = known[~numpy.isnan(known)]
    deciles = found.deciles.loc[(1, 1), [f"induction_d{decile}" for decile in range(10, 100, 10)]]
    assert deciles.to_numpy() == pytest.approx(numpy.percentile(known, range(10, 100, 10)), abs=1e-5)
    assert found.deciles.attrs["texts"] == 50
    own = [av.roles(model.trace(text)).loc[(1, 1)] for text in texts]
    shares = [row["induction"] for row in own]
    told = found.roles.loc[(1, 1)]
    assert told["role induction_texts"] == sum(not numpy.isnan(share) for share in shares)
    assert told["role induction_holds"] == sum(
        row["induction"] >= av.ROLES["induction"].threshold and not row["broad"] >= EVEN for row in own
    )


def test_the_strongest_examples_are_the_strongest_and_no_pair_comes_twice(tmp_path: Path) -> None:
    model, texts = shipped("induction"), by_lot(90, words=["moon", "cheese", "frog", "ring", "dog", "cat", "tree"])
    found = av.scan(model, texts, tmp_path).examples(1, 1, "induction")
    strong, some = found[found["kind"] == "strongest"], found[found["kind"] == "random"]
    best: dict[tuple[int, int], float] = {}
    for text in texts:
        trace = model.trace(text)
        tokens, weights = trace.query_tokens(), trace.weights(1, 1)
        rows = [
            (float(weights[i, max(earlier) + 1]), i)
            for i in tokens.counted
            if (earlier := [j for j in range(i) if tokens.ids[j] == tokens.ids[i]])
        ]
        if rows:
            value, row = max(rows, key=lambda pair: (pair[0], -pair[1]))
            pair = (tokens.ids[row], tokens.ids[int(weights[row].argmax())])
            best[pair] = max(best.get(pair, 0.0), value)
    assert strong["value"].to_numpy() == pytest.approx(sorted(best.values(), reverse=True)[:STRONGEST], abs=1e-5)
    assert strong["text"].is_unique
    for row in strong.itertuples():
        assert model.trace(row.said).weights(1, 1)[row.query, row.key] == pytest.approx(row.weight, abs=1e-5)
        assert row.said == texts[row.text]
    assert set(some["tenth"]) == set(range(1, 11))


def test_lift_is_weight_over_an_even_spread_of_what_heads_do_not_rest_with(tmp_path: Path) -> None:
    model, texts = shipped("all-MiniLM-L6-v2"), ["The cat sat, and it ran.", "He saw 12 dogs."]
    kinds = av.scan(model, texts, tmp_path).kinds
    named = {"[CLS]": "special", "[SEP]": "special", ",": "punctuation", ".": "punctuation", "12": "number"}
    named |= dict.fromkeys(["it", "he"], "pronoun") | dict.fromkeys(["the", "and"], "function word")
    own: dict[tuple[str, str], list[float]] = {}
    for text in texts:
        trace = model.trace(text)
        tokens, weights = trace.query_tokens(), trace.weights(3, 2).double()
        of = [named.get(label, "word") for label in tokens.labels]
        for i in tokens.counted:
            free = 1 - sum(float(weights[i, j]) for j, kind in enumerate(of) if kind == "special")
            for j, kind in enumerate(of):
                chance = 1 / len(of) if kind == "special" else free / (len(of) - 2)
                sums = own.setdefault((of[i], kind), [0.0, 0.0, 0.0])
                own[(of[i], kind)] = [sums[0] + float(weights[i, j]), sums[1] + chance, sums[2] + 1]
    told = kinds[(kinds["layer"] == 3) & (kinds["head"] == 2)].set_index(["query_kind", "key_kind"])
    assert set(told.index) == set(own)
    for pair, (weight, chance, pairs) in own.items():
        row = told.loc[pair]
        assert row["lift"] == pytest.approx(weight / chance, rel=1e-4) and row["pairs"] == pairs


@pytest.mark.usefixtures("small_chunks")
def test_any_number_of_workers_gives_the_same_bits(tmp_path: Path) -> None:
    model, texts = shipped("induction"), by_lot(3 * CHUNK + 5)
    for workers in (1, 3):
        av.scan(model, texts, tmp_path / str(workers), workers=workers)
    assert files_of(tmp_path / "1") == files_of(tmp_path / "3")


@pytest.mark.usefixtures("small_chunks")
def test_a_scan_that_was_stopped_goes_on_and_ends_in_the_same_files(tmp_path: Path) -> None:
    model, texts = shipped("induction"), by_lot(4 * CHUNK)
    av.scan(model, texts, tmp_path / "whole")
    with pytest.raises(StoppedError):
        av.scan(model, texts, tmp_path / "out", progress=stop_after(CHUNK))
    half = av.Scan.load(tmp_path / "out")
    assert not half.complete and half.manifest["done"]["texts"] == CHUNK and "stopped" in repr(half)
    assert half.table["previous_n"].iloc[0] < av.Scan.load(tmp_path / "whole").table["previous_n"].iloc[0]
    told: list[av.Progress] = []
    av.scan(model, texts, tmp_path / "out", progress=told.append)
    assert [one.texts for one in told] == [2 * CHUNK, 3 * CHUNK, 4 * CHUNK]
    assert told[0].of == 4 * CHUNK and told[-1].seconds_left == 0
    assert files_of(tmp_path / "out") == files_of(tmp_path / "whole")


def test_a_scan_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    model, texts = shipped("induction"), by_lot(70)
    av.scan(model, texts, tmp_path / "out")
    before = files_of(tmp_path / "out")
    with pytest.raises(av.ScanError, match="another corpus"):
        av.scan(model, texts[::-1], tmp_path / "out")
    with pytest.raises(av.ScanError, match="length was 64, now 8"):
        av.scan(model, texts, tmp_path / "out", length=8)
    with pytest.raises(av.ScanError, match="name was 'induction', now 'lists'"):
        av.scan(shipped("lists"), texts, tmp_path / "out")
    assert files_of(tmp_path / "out") == before
    manifest = json.loads(before["manifest.json"])
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(manifest | {"versions": {"torch": "0.1"}}))
    with pytest.raises(av.ScanError, match=r"other versions.*torch was '0.1'"):
        av.scan(model, texts, tmp_path / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(av.ScanError, match=r"files that aren't a scan's \(letter\.txt"):
        av.scan(model, texts, tmp_path / "mine")


@pytest.mark.usefixtures("small_chunks")
def test_another_corpus_is_refused_in_the_middle_too(tmp_path: Path) -> None:
    model, texts = shipped("induction"), by_lot(2 * CHUNK)
    with pytest.raises(StoppedError):
        av.scan(model, texts, tmp_path, progress=stop_after(CHUNK))
    with pytest.raises(av.ScanError, match="another corpus"):
        av.scan(model, ["frog", *texts[1:]], tmp_path)
    assert av.scan(model, iter(texts), tmp_path).complete


def test_a_second_scan_into_one_folder_is_refused(tmp_path: Path) -> None:
    model, texts = shipped("induction"), by_lot(5)
    with Folder(tmp_path).locked(), pytest.raises(av.ScanError, match="another process is scanning into"):
        av.scan(model, texts, tmp_path)
    assert av.scan(model, texts, tmp_path).complete


@pytest.mark.usefixtures("small_chunks")
def test_a_disk_that_is_full_stops_the_scan_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, texts = shipped("induction"), by_lot(3 * CHUNK)
    av.scan(model, texts, tmp_path / "whole")
    monkeypatch.setattr(scanning, "KEPT_EVERY", -1)
    writes: list[Path] = []

    def full(path: Path, content: bytes) -> None:
        writes.append(path)
        if len(writes) > 2:
            raise OSError(28, "No space left on device")
        path.write_bytes(content)

    monkeypatch.setattr("attention_viz.corpus.folder.write_whole", full)
    with pytest.raises(av.ScanError, match=r"can't write .*: No space left on device.*start the same scan again"):
        av.scan(model, texts, tmp_path / "out")
    monkeypatch.undo()
    monkeypatch.setattr(scanning, "CHUNK", CHUNK)
    assert av.Scan.load(tmp_path / "out").manifest["done"]["texts"] == CHUNK
    av.scan(model, texts, tmp_path / "out")
    assert files_of(tmp_path / "out") == files_of(tmp_path / "whole")


def test_long_texts_are_cut_and_those_with_nothing_to_read_are_counted(tmp_path: Path) -> None:
    model = shipped("all-MiniLM-L6-v2")
    found = av.scan(model, ["word " * 200_000, "\u200b\u200b", "a cat"], tmp_path, length=16)
    assert found.manifest["done"] == {"texts": 3, "skipped": 1, "cut": 1, "tokens": 16 + 4}
    assert found.texts["said"].tolist() == ["word" + " word" * 13, "a cat"]


def test_what_leaves_nothing_to_read_is_no_corpus(tmp_path: Path) -> None:
    for texts in ([], ["", " \n"]):
        with pytest.raises(av.UnusableText, match="texts has no text; needed: one or more"):
            av.scan(shipped("induction"), texts, tmp_path / "none")
    found = av.scan(shipped("all-MiniLM-L6-v2"), ["\u200b"], tmp_path / "nothing", layers=[0])
    assert found.manifest["done"] == {"texts": 1, "skipped": 1, "cut": 0, "tokens": 0}
    assert found.table["entropy"].isna().all() and set(found.roles["role"]) == {"mixed"}


def test_texts_in_many_scripts_are_read_as_they_are(tmp_path: Path) -> None:
    texts = ["雨が降る。", "שלום עולם", "مرحبا بالعالم", "Привет, мир", "สวัสดี", "नमस्ते", "한국어", "👩‍👩‍👧 𝔘𝔫"]
    model = shipped("SmolLM2-135M-Instruct")
    # Half of a pair of surrogates is no text, and is counted apart.
    found = av.scan(model, [*texts, "e\u0301\ud800"], tmp_path, layers=[0])
    assert found.manifest["done"]["texts"] == len(texts) + 1 and found.manifest["done"]["skipped"] == 1
    whole = av.head_table([model.trace(text, layers=[0]) for text in texts])
    pandas.testing.assert_frame_equal(found.table, whole, atol=2e-5, check_dtype=False)


def test_a_sample_of_the_queries_comes_with_its_error(tmp_path: Path) -> None:
    model, texts = shipped("all-MiniLM-L6-v2"), ["The cat sat because it was tired of the mat in the sun."] * 3
    found = av.scan(model, texts, tmp_path, rows=4, layers=[2]).table
    whole = av.head_table([model.trace(text, layers=[2]) for text in texts], rows=4)
    assert found.index.get_level_values("layer").unique().tolist() == [2]
    pandas.testing.assert_frame_equal(found, whole, atol=2e-5, check_dtype=False)
    assert (found["entropy_error"] > 0).all()


def test_what_can_not_be_scanned_is_refused_by_name(tmp_path: Path) -> None:
    model = shipped("induction")
    with pytest.raises(av.UnsupportedModel, match="Scratch"):
        av.scan(av.load("scratch"), ["a"], tmp_path)  # pyright: ignore[reportArgumentType]
    with pytest.raises(av.UnsupportedModel, match="unknown engine 'dask'; choose local, ray"):
        av.scan(model, ["a"], tmp_path, engine="dask")
    with pytest.raises(av.ShapeError, match="limit must be a whole number, 1 or more; got 0"):
        av.scan(model, ["a"], tmp_path, limit=0)
    with pytest.raises(av.ShapeError, match="layer 7"):
        av.scan(model, ["a"], tmp_path / "layers", layers=[7])
    with pytest.raises(av.UnusableText, match="texts has no text"):
        av.scan(model, ["", "  "], tmp_path / "none")
    with pytest.raises(av.ScanError, match="contains no scan"):
        av.Scan.load(tmp_path / "nowhere")
    with pytest.raises(av.ScanError, match=r"name it, as in scan\.of"):
        _ = av.scan(shipped("translation"), TRANSLATED[:1], tmp_path / "pair").table


def test_a_scan_is_asked_for_heads_and_metrics_that_it_has(tmp_path: Path) -> None:
    found = av.scan(shipped("induction"), by_lot(5), tmp_path)
    with pytest.raises(av.ShapeError, match="choose entropy, previous"):
        found.examples(0, 0, "beauty")
    with pytest.raises(av.ShapeError, match="the scan has no head 9·0; it has layers 0, 1 with heads 0 to 3"):
        found.examples(9, 0, "entropy")
    with pytest.raises(av.ScanError, match="choose decoder"):
        found.of("cross")
