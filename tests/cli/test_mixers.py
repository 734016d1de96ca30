"""Commands with --stream mixer print what the library returns for layers without a softmax."""

import csv
import io
from pathlib import Path

import pytest

import attention_viz as av
from attention_viz.cli import main
from attention_viz.cli.exits import REFUSED
from tests.analysis.mixed import mixed_trace
from tests.answers import rows_of


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("mixers") / "hybrid.safetensors"
    mixed_trace("bamba").save(path)
    return str(path)


def test_heads_are_listed_and_ranked_by_shares(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["heads", "--trace", saved, "--stream", "mixer", "--metric", "reach,negative", "--format", "json"]) == 0
    rows, own = rows_of(capsys.readouterr().out), av.head_table(mixed_trace("bamba"), stream="mixer")
    expected = own.sort_values("reach", ascending=False)
    assert [(one["layer"], one["head"]) for one in rows] == list(expected.index)
    assert [one["negative"] for one in rows] == pytest.approx(expected["negative"].tolist(), abs=1e-6)
    assert main(["heads", "--trace", saved, "--stream", "mixer"]) == 0
    assert "No entropy: a signed row isn't a distribution" in capsys.readouterr().err
    for options, message in (
        (["--stream", "mixer", "--metric", "entropy"], "can't show entropy: a signed row isn't a distribution"),
        (["--metric", "reach"], "can't show reach: it is a metric of layers without a softmax; add --stream mixer"),
    ):
        assert main(["heads", "--trace", saved, *options]) == REFUSED
        assert message in capsys.readouterr().err


def test_a_table_and_a_search_have_signed_weights(
    saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own, out = mixed_trace("bamba"), tmp_path / "mixer.csv"
    assert main(["trace", "--trace", saved, "--stream", "mixer", "--head", "3", "--out", str(out)]) == 0
    rows = list(csv.DictReader(io.StringIO(out.read_text("utf-8"))))
    weights = own.weights(0, 3, "mixer")
    assert [float(row["weight"]) for row in rows] == pytest.approx(weights.flatten().tolist(), rel=1e-6)
    assert {row["stream"] for row in rows} == {"mixer"} and min(float(row["weight"]) for row in rows) < 0
    query, key = (own.query_tokens().labels[at] for at in (9, 7))
    capsys.readouterr()
    assert main(["find", query, key, "--trace", saved, "--stream", "mixer", "--format", "json"]) == 0
    found = rows_of(capsys.readouterr().out)
    expected = av.find_heads(own, query, key, "mixer")
    assert [one["share"] for one in found] == pytest.approx(expected["share"].head(10).tolist())
