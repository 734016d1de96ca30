"""The command line: every command's output is the library's own, every refusal has its message and its code."""

import csv
import io
import json
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import pandas
import pytest

import attention_viz as av
from attention_viz.cli import app, main
from attention_viz.cli.answers.answer import Answer
from attention_viz.cli.arguments import COMPLETE
from attention_viz.cli.exits import FAILED_CHECK, NOT_FOUND, REFUSED, USAGE
from attention_viz.cli.files import ENDINGS
from attention_viz.cli.output import show
from attention_viz.cli.program import program
from attention_viz.cli.server import new_teacher_key
from attention_viz.errors import AttentionVizError
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.scratch.model import Scratch
from attention_viz.trace.export import to_csv
from attention_viz.trace.trace import Fidelity
from attention_viz.views import heatmap_svg
from attention_viz.views.export.plain import plain_svg
from scripts import serve
from tests.answers import answer_of, result_of, rows_of
from tests.shipped import load_once
from tests.terms import assert_same_terms

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "command-line.md").read_text("utf-8")
COMMANDS = (
    "app", "trace", "findings", "heads", "find", "compare", "why", "effects", "patch", "circuits", "scan",
    "course", "verify", "plan", "models", "mcp", "schema", "completion",
)  # fmt: skip
DINO = "dinov2-small"
MOON = "moon cheese frog ring moon cheese"
ANIMAL = "the animal did not cross the street because it was too tired"
PROGRAM = (sys.executable, "-m", "attention_viz")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module", autouse=True)
def read_once() -> Iterator[None]:
    """Each model is read from its files once, as anybody reads it, however many commands ask; refusals are not kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(av, "load", load_once)
        yield


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process: its exit code, standard output and standard error."""

    def go(*words: str) -> tuple[int, str, str]:
        return main(words), *capsys.readouterr()

    return go


def refused(result: tuple[int, str, str], message: str, code: int = REFUSED) -> None:
    """Nothing on standard output; the message in one line at the end of standard error, and the code."""
    assert result[:2] == (code, ""), result
    *before, last = result[2].splitlines()
    assert re.search(message, last), result[2]
    assert last.startswith("attention-viz")
    assert code == USAGE or [line for line in before if not line.startswith("Loading ")] == []


# Pictures and sound


def test_a_picture_and_a_sound_are_traced_to_a_file_and_what_was_done_to_them_is_told(run: Run, tmp_path: Path) -> None:
    cat, words = tmp_path / "cat.safetensors", tmp_path / "words.safetensors"
    code, _, err = run("trace", "--picture", str(SAMPLES["chelsea"].path), "--model", DINO, "--out", str(cat))
    assert code == 0
    assert "Its middle was read, at 224 × 224 pixels." in err
    sound = ("--sound", str(SAMPLES["window"].path), "--target", "He closed it.")
    assert run("trace", *sound, "--model", "whisper-tiny.en", "--out", str(words))[0] == 0
    assert av.Trace.load(cat).query_tokens().labels[:2] == ("[CLS]", "0,0")
    assert "ĠHe" in av.Trace.load(words).query_tokens("cross").labels
    code, told, _ = run("findings", "--trace", str(cat))
    assert code == 0 and "atch " in told


def test_a_picture_beside_a_text_or_for_a_model_that_reads_none_is_refused(run: Run, tmp_path: Path) -> None:
    picture, out = ("--picture", str(SAMPLES["chelsea"].path)), ("--out", str(tmp_path / "no.safetensors"))
    refused(run("trace", "a cat", *picture, "--model", DINO, *out), "one input only", 2)
    refused(run("trace", *picture, *out), "add --model", 2)
    refused(run("trace", *picture, "--model", "scratch", *out), "reads text")
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"none")
    refused(run("trace", "--picture", str(broken), "--model", DINO, *out), "broken.png")


# Help and the guide


@pytest.mark.parametrize("command", COMMANDS)
def test_help_and_the_guide_name_the_same_options(command: str, run: Run) -> None:
    code, out, err = run(command, "--help")
    assert (code, err) == (0, "")
    section = re.search(rf"^## {command}$(.*?)(?=^## |\Z)", GUIDE, re.MULTILINE | re.DOTALL)
    assert section
    options = r"(?<![\w-])--[a-z]+"
    assert set(re.findall(options, out)) - {"--help"} == set(re.findall(options, section[1]))
    assert section[1].count("attention-viz ") >= 1


def test_the_help_lists_every_command_and_the_guide_has_a_section_for_each(run: Run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    listed = out.partition("Commands:\n")[2].partition("\n\n")[0]
    assert tuple(re.findall(r"^  ([a-z]+)(?: |$)", listed, re.MULTILINE)) == COMMANDS
    assert tuple(re.findall(r"^## (\w+)", GUIDE, re.MULTILINE)) == COMMANDS


def test_every_example_is_one_that_the_parser_takes(run: Run) -> None:
    helped = [run(command, "--help")[1] for command in COMMANDS]
    examples = [re.findall(r"^(?:  )?attention-viz (.+)$", text, re.MULTILINE) for text in (GUIDE, *helped)]
    assert list(map(len, examples)) == [len(COMMANDS), *[1] * len(COMMANDS)]
    assert examples[0] == [example for some in examples[1:] for example in some]
    for example in examples[0]:
        name, *words = shlex.split(example)
        program.commands[name].make_context(name, words)


def test_the_guide_names_every_ending_and_the_document_of_the_metrics() -> None:
    assert re.findall(r"^\| `(\.\w+)`", GUIDE, re.MULTILINE) == list(ENDINGS)
    section = GUIDE.partition("## heads")[2].partition("## find")[0]
    assert "](metrics.md)" in section


def test_the_version_is_the_package_s(run: Run) -> None:
    assert run("--version") == (0, f"attention-viz {av.__version__}\n", "")


def test_help_loads_nothing_heavy() -> None:
    ask = (
        "import sys; from attention_viz.cli import main\n"
        "main(['trace', '--help'])\n"
        "print(*{'torch', 'transformers', 'pandas', 'plotly', 'numpy'} & sys.modules.keys(), 'end')"
    )
    told = subprocess.run([sys.executable, "-c", ask], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.splitlines()[-1].strip() == "end"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Missing command"),
        (("nothing",), "No such command 'nothing'"),
        (("trace", "a b"), "Missing option '--out'"),
        (("trace", "a b", "--out", "w.csv"), "add --model"),
        (("heads",), "a text or --trace FILE"),
        (("find", "a", "b", "--text", "a b", "--trace", "w.safetensors", "--model", "scratch"), "takes one text"),
        (("find", "a", "b", "--text", "a b", "--trace", "w.safetensors"), "takes one text"),
        (("heads", "a b", "--model", "scratch", "--top", "3"), "--top: .*add --metric"),
        (("patch", "--text", "a", "--token", "b", "--model", "induction"), "--other TEXT or --other-trace"),
        (("models", "--format", "xml"), "'xml' is not one of 'table', 'csv', 'json'"),
        (("models", "induction"), "unexpected words: induction; .*--install NAME"),
        (("app", "--port", "0"), "'0'; .*whole number from 1 to 65535"),
        (("app", "--port", "70000"), "1 to 65535"),
        (("find", "a", "b", "--text", "a b", "--model", "scratch", "--top", "0"), "'0'; .*whole number of at least 1"),
        (("heads", "a b", "--model", "scratch", "--metric", "beauty"), "'beauty'; choose from entropy, .*variance"),
    ],
)
def test_wrong_usage_is_2(words: tuple[str, ...], message: str, run: Run) -> None:
    refused(run(*words), message, 2)


# models


def test_models_in_a_process_of_its_own_as_json() -> None:
    done = subprocess.run(
        [*PROGRAM, "models", "--format", "json"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert rows_of(done.stdout) == av.catalogue().reset_index().to_dict("records")


def test_models_as_a_table_and_as_csv(run: Run) -> None:
    code, out, err = run("models")
    assert (code, err) == (0, "")
    heading, *rows = out.splitlines()
    assert heading.split() == ["name", *av.catalogue().columns]
    assert [row.split()[0] for row in rows] == list(av.CATALOGUE)
    read = pandas.read_csv(io.StringIO(run("models", "--format", "csv")[1]), keep_default_na=False)
    pandas.testing.assert_frame_equal(read, av.catalogue().reset_index(), check_dtype=False)


# trace


def test_safetensors_holds_the_whole_trace(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "moon.safetensors"
    assert run("trace", MOON, "--model", "induction", "--out", str(path)) == (
        0, "", f"Loading induction …\nWrote {path}\n",
    )  # fmt: skip
    read, own = av.Trace.load(path), av.load("induction").trace(MOON)
    assert_same_terms(read.attention(1), own.attention(1))
    assert read.provenance.as_dict() == own.provenance.as_dict()


@pytest.mark.parametrize(
    ("words", "place"),
    [((), {}), (("--layer", "1", "--head", "2"), {"layer": 1, "head": 2}), (("--layer", "0"), {"layer": 0})],
)
def test_csv_and_parquet_hold_the_weights_asked_for(
    words: tuple[str, ...], place: dict[str, int], run: Run, tmp_path: Path
) -> None:
    own = av.load("induction").trace(MOON).table(**place)
    for ending in ("csv", "parquet"):
        assert run("trace", MOON, "--model", "induction", "--out", str(tmp_path / f"w.{ending}"), *words)[0] == 0
    assert (tmp_path / "w.csv").read_bytes() == to_csv(own).encode()
    pandas.testing.assert_frame_equal(pandas.read_parquet(tmp_path / "w.parquet"), own)


def test_some_layers_and_fewer_numbers_are_the_library_s(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, words = av.load("induction").trace(MOON), ("trace", MOON, "--model", "induction", "--layers", "1", "--force")
    path = tmp_path / "w.safetensors"
    assert run(*words, "--out", str(path), "--what", "weights", "--dtype", "float16")[::2] == (
        0,
        f"Loading induction …\nWrote {path}\n",
    )
    code, _, err = run("heads", "--trace", str(path))
    assert code == 0
    said = r"^attention-viz: w\.safetensors: only the weights .*rounded to float16: no weight differs by more than"
    assert re.search(said, err, re.MULTILINE)
    with pytest.warns(av.AttentionVizWarning):
        read = av.Trace.load(path)
    assert read.layer_numbers() == (1,) and read.provenance.stored == "weights, float16"
    assert run(*words, "--out", str(tmp_path / "w.csv"))[0] == 0
    assert (tmp_path / "w.csv").read_bytes() == to_csv(own.table(1)).encode()
    assert run(*words, "--out", str(tmp_path / "w.html"))[0] == 0
    assert (tmp_path / "w.html").read_text("utf-8") == av.explore(own, layer=1, layers=[1]).html()
    # As if this were a machine that writes a line of the table in a second; the file is put together from pieces.
    monkeypatch.setattr("attention_viz.cli.files.LINES_A_SECOND", 1)
    monkeypatch.setattr("attention_viz.cli.files.LINES_AT_A_TIME", 50)
    code, _, err = run(*words, "--out", str(tmp_path / "w.csv"))
    assert (code, err.count("attention-viz: w.csv: 196 rows, which takes about 3 minutes")) == (0, 1)
    assert [line for line in err.splitlines() if " % done" in line][-1] == "w.csv: 100 % done"
    assert (tmp_path / "w.csv").read_bytes() == to_csv(own.table(1)).encode()


def test_a_picture_is_laid_out_for_print_as_it_is_asked_for(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "head.svg"
    words = ("trace", MOON, "--model", "induction", "--layer", "0", "--head", "1", "--out")
    layout = ("--width", "85mm", "--height", "8cm", "--title", "", "--no-footer", "--no-numbers", "--font-size", "9")
    assert run(*words, str(path), *layout)[0] == 0
    own = heatmap_svg(
        av.load("induction").trace(MOON),
        0,
        1,
        width="85mm",
        height="8cm",
        title="",
        footer=False,
        numbers=False,
        font_size=9,
    )
    assert path.read_text("utf-8") == plain_svg(own)
    again = tmp_path / "again.svg"
    refused(run(*words, str(again), "--width", "wide"), "width .* mm.*'wide'")
    refused(run(*words, str(tmp_path / "w.csv"), "--width", "85mm"), r"\.csv isn't a picture; leave out --width", 2)


def test_svg_is_the_head_s_picture_and_html_opens_on_it(run: Run, tmp_path: Path) -> None:
    for ending in ("svg", "HTML"):
        path = str(tmp_path / f"head.{ending}")
        assert run("trace", MOON, "--model", "induction", "--layer", "1", "--head", "3", "--out", path)[0] == 0
    own = av.load("induction").trace(MOON)
    assert (tmp_path / "head.svg").read_text("utf-8") == plain_svg(heatmap_svg(own, 1, 3))
    assert (tmp_path / "head.HTML").read_text("utf-8") == av.explore(own, layer=1, head=3).html()


def test_target_stream_and_second_sentence_are_handed_on(run: Run, tmp_path: Path) -> None:
    path = str(tmp_path / "w.csv")
    words = ("--model", "translation", "--target", "le chat voit le chien", "--stream", "cross", "--out", path)
    assert run("trace", "the cat sees the dog", *words)[0] == 0
    own = av.load("translation").trace("the cat sees the dog", target="le chat voit le chien")
    assert Path(path).read_text("utf-8") == to_csv(own.table(stream="cross"))
    words = ("--model", "all-MiniLM-L6-v2", "--second", "A boat drifted by", "--layer", "0", "--head", "4")
    assert run("trace", "The bank of the river", *words, "--force", "--out", path)[0] == 0
    own = av.load("all-MiniLM-L6-v2").trace("The bank of the river", "A boat drifted by")
    assert Path(path).read_text("utf-8") == to_csv(own.table(0, 4))


def test_a_dash_reads_standard_input_without_the_line_s_end(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(MOON + "\n"))
    path = tmp_path / "w.safetensors"
    assert run("trace", "-", "--model", "scratch", "--out", str(path))[0] == 0
    assert av.Trace.load(path).provenance.text == MOON


def test_standard_input_that_is_no_text_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a \xff"), "utf-8"))
    refused(run("heads", "-", "--model", "scratch"), "standard input isn't text in utf-8: invalid start byte")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("w.jpeg",),
            r"\.jpeg files aren't written; use one of \.safetensors, .*, \.svg, \.png, \.pdf$",
        ),
        (("w.png",), r"\.png shows one head; it needs --layer and --head"),
        (("w.pdf", "--head", "0"), r"\.pdf shows one head; it needs --layer and --head"),
        (("weights",), "'weights' has no ending; use one of"),
        (("w.svg",), "needs --layer and --head"),
        (("w.svg", "--layer", "0"), "needs --layer and --head"),
        (("w.safetensors", "--layer", "0", "--stream", "encoder"), "whole trace; leave out --layer, --stream"),
        (("w.csv", "--what", "weights", "--dtype", "float16"), "isn't a saved trace; leave out --what, --dtype"),
        (("w.svg", "--layer", "0", "--head", "0", "--layers", "0,1"), "shows one head; leave out --layers"),
        (("w.csv", "--layer", "0", "--layers", "0,1"), "--layers: .*with --layer, so leave out either"),
        (("w.csv", "--layers", "0,first"), "'first'; .*whole number of at least 0"),
    ],
)
def test_endings_and_options_that_don_t_go_together(words: tuple[str, ...], message: str, run: Run) -> None:
    refused(run("trace", "a b", "--model", "scratch", "--out", *words), message, 2)


def test_a_file_that_is_there_stays_unless_forced(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    path.write_text("mine")
    words = ("trace", "a b", "--model", "scratch", "--out", str(path))
    refused(run(*words), f"{re.escape(str(path))} exists already; add --force")
    assert path.read_text() == "mine"
    assert run(*words, "--force")[0] == 0
    assert path.read_text().startswith("stream,layer,head,")


def test_what_can_t_be_written_is_said_before_the_model_loads(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out(name: str) -> tuple[int, str, str]:
        result = run("trace", "a b", "--model", "scratch", "--force", "--out", str(tmp_path / name))
        assert "Loading" not in result[2]
        return result

    refused(out("nowhere/w.csv"), "can't write w.csv: create the folder .*nowhere")
    (tmp_path / "folder.csv").mkdir()
    refused(out("folder.csv"), "folder.csv is a folder; --out needs a file name")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    refused(out("w.parquet"), "need pyarrow, .*pip install pyarrow")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("ending", [ending for ending in ENDINGS if ending not in (".png", ".pdf")])
def test_a_disk_that_refuses_is_one_line(
    ending: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"w{ending}"
    path.symlink_to("/dev/full")
    place = ("--layer", "0", "--head", "0") if ending == ".svg" else ()
    result = run("trace", "a b", "--model", "scratch", "--force", "--out", str(path), *place)
    refused(result, f"w{ending}.*No space left on device")


# heads and find


def test_heads_are_the_library_s_table(run: Run) -> None:
    own = av.head_table(av.load("induction").trace(MOON))
    code, out, err = run("heads", MOON, "--model", "induction", "--format", "json")
    assert (code, err) == (0, "Loading induction …\n")
    # A metric that no head has is a column of nulls, which pandas takes for objects.
    read = pandas.DataFrame(rows_of(out)).set_index(["layer", "head"]).astype(dict(own.dtypes))
    pandas.testing.assert_frame_equal(read, own, check_exact=True)
    out = run("heads", MOON, "--model", "induction", "--format", "csv")[1]
    pandas.testing.assert_frame_equal(pandas.read_csv(io.StringIO(out)).set_index(["layer", "head"]), own)


def test_heads_by_a_metric_are_the_largest_first(run: Run) -> None:
    own = av.head_table(av.load("induction").trace(MOON))["induction"]
    read = rows_of(run("heads", MOON, "--model", "induction", "--metric", "induction", "--format", "json")[1])
    assert [set(row) for row in read] == [{"layer", "head", "induction", "induction_n"}] * 8
    values = [row["induction"] for row in read]
    assert values == sorted(own, reverse=True)
    assert all(own.loc[row["layer"], row["head"]] == row["induction"] for row in read)
    heading, first, *_ = run("heads", MOON, "--model", "induction", "--metric", "induction")[1].splitlines()
    assert heading.split() == ["layer", "head", "induction"]
    assert first.split() == [str(read[0]["layer"]), str(read[0]["head"]), f"{values[0]:.4f}"]


def test_heads_make_the_standard_test_of_induction_beside_the_text(run: Run, tmp_path: Path) -> None:
    trace = av.load("induction").trace(MOON)
    own = av.head_table(trace, repeated_random=True).sort_values("induction_random", ascending=False)
    asked = ("--repeated-random", "--metric", "induction_random,induction", "--format", "json")
    columns = ["layer", "head", "induction_random", "induction_random_n", "induction", "induction_n"]
    code, out, _ = run("heads", MOON, "--model", "induction", *asked)
    pandas.testing.assert_frame_equal(pandas.DataFrame(rows_of(out)), own.reset_index()[columns])
    trace.save(tmp_path / "moon.safetensors")
    assert run("heads", "--trace", str(tmp_path / "moon.safetensors"), *asked)[:2] == (code, out)
    _, out, _ = run("heads", MOON, "--model", "induction", "--repeated-random", "--metric", "induction", "--top", "1")
    assert out.split("\n")[0].split() == ["layer", "head", "induction", "induction_random"]
    refused(run("heads", MOON, "--model", "induction", "--metric", "induction_random"), "needs --repeated-random", 2)


def test_what_is_no_number_is_null_nothing_or_nan(run: Run) -> None:
    words = ("heads", "moon cheese", "--model", "induction", "--metric", "induction", "--format")
    assert math.isnan(av.head_table(av.load("induction").trace("moon cheese"))["induction"].iloc[0])
    assert {row["induction"] for row in rows_of(run(*words, "json")[1])} == {None}
    assert run(*words, "csv")[1].splitlines()[1] == "0,0,,0"
    _, out, err = run(*words, "table")
    assert out.splitlines()[1].split() == ["0", "0", "nan"]
    assert re.search("no value, because .*: induction$", err, re.MULTILINE)


def test_of_several_streams_one_has_to_be_named(run: Run) -> None:
    words = ("heads", "the cat sees the dog", "--model", "translation", "--format", "json")
    refused(run(*words), "encoder, decoder, cross")
    own = av.head_table(av.load("translation").trace("the cat sees the dog"), "cross")
    read = rows_of(run(*words, "--stream", "cross")[1])
    assert [row["confidence"] for row in read] == list(own["confidence"])
    assert {row["distance"] for row in read} == {None}


def test_findings_are_those_of_the_library(run: Run) -> None:
    own = av.findings(av.load("coreference").trace(ANIMAL), 3)
    read = rows_of(run("findings", ANIMAL, "--model", "coreference", "--top", "3", "--format", "json")[1])
    assert [row["finding"] for row in read] == [one.text for one in own]
    assert [(row["layer"], row["head"], row["query"], row["key"]) for row in read] == [
        (one.layer, one.head, one.query, one.key) for one in own
    ]
    _, out, err = run("findings", "queen", "--model", "coreference", "--format", "json")
    (note,) = answer_of(out)["notes"]
    assert rows_of(out) == [] and "no findings" not in err
    assert re.search("no findings in “queen”: .*1 content word", note)
    assert note in run("findings", "queen", "--model", "coreference")[2]


def test_find_ranks_as_the_library_does(run: Run) -> None:
    own = av.find_heads(av.load("coreference").trace(ANIMAL), query="it", key="animal")
    words = ("find", "it", "animal", "--text", ANIMAL, "--model", "coreference")
    for more, count in (((), len(own)), (("--top", "3"), 3)):
        read = rows_of(run(*words, *more, "--format", "json")[1])
        assert read == own.head(count).to_dict("records")
    assert run(*words, "--top", "2")[1].splitlines()[0].split() == ["layer", "head", "weight", "query", "key", "rank"]


def test_find_prints_ten_unless_told_otherwise(run: Run) -> None:
    words = ("find", "bank", "river", "--text", "The bank of the river", "--model", "all-MiniLM-L6-v2")
    assert len(rows_of(run(*words, "--format", "json")[1])) == 10
    assert len(rows_of(run(*words, "--format", "json", "--top", "500")[1])) == 72


def test_compare_is_the_library_s_comparison(run: Run) -> None:
    other, words = "moon cheese ring frog moon cheese", ("compare", "--text", MOON, "--model", "induction")
    model = av.load("induction")
    one, two = model.trace(MOON), model.trace(other)
    code, out, _ = run(*words, "--other", other, "--format", "json")
    told, found = result_of(out), av.head_divergences(one, two)
    assert code == 0 and (told["shared"], told["align"]) == (3, "position")
    assert [(row["layer"], row["head"]) for row in told["rows"]] == list(found.index)
    assert [row["divergence"] for row in told["rows"]] == pytest.approx(found["divergence"].tolist())
    asked = ("--layer", "1", "--head", "1", "--align", "token", "--top", "1", "--format", "json")
    told, pair = result_of(run(*words, "--other", other, *asked)[1]), av.compare(one, two, 1, 1, align="token")
    assert told["divergence"] == pytest.approx(pair.mean)
    assert abs(told["rows"][0]["difference"]) == pytest.approx(float(pair.difference.nan_to_num().abs().max()))
    assert "--layer and --head together" in run(*words, "--other", other, "--layer", "1")[2]


def test_why_is_the_library_s_decomposition(run: Run) -> None:
    words = ("why", "--text", MOON, "--model", "induction", "--format", "json")
    model = av.load("induction")
    assert isinstance(model, av.AttentionModel)
    trace = model.trace(MOON)
    code, out, _ = run(*words, "--token", "frog", "--against", "ring", "--top", "3")
    told, found = result_of(out), av.decompose(model, trace, av.Logit("frog", against="ring"))
    assert code == 0
    assert told["total"] == pytest.approx(found.total)
    assert told["remainder"] == pytest.approx(found.remainder, abs=1e-5)
    assert told["held"] == "direct effect; norms and patterns held fixed"
    assert [row["contribution"] for row in told["rows"]] == pytest.approx(found.table.contribution[:3].tolist())
    code, out, _ = run(*words, "--layer", "1", "--head", "1", "--query", "5", "--key", "frog", "--relative")
    told, found = result_of(out), av.decompose(model, trace, av.Score(1, 1, 5, 3, relative=True))
    assert told["total"] == pytest.approx(found.total)
    assert {row["side"] for row in told["rows"]} == {"query", "key"}
    pair = (*words, "--layer", "1", "--head", "1", "--query", "3", "--key")
    assert ["its weight is 0" in "".join(answer_of(run(*pair, key)[1])["notes"]) for key in ("1", "5")] == [False, True]
    assert "its weight is 0" in run(*pair, "5", "--format", "table")[2]
    assert "total" in run("why", "--text", MOON, "--model", "induction", "--token", "frog")[1]


def test_patch_is_what_the_library_puts(run: Run) -> None:
    model, other = av.load("induction"), "moon cheese ring frog moon cheese"
    assert isinstance(model, av.AttentionModel)
    words = ("patch", "--text", MOON, "--other", other, "--model", "induction", "--token", "frog", "--format", "json")
    code, out, err = run(*words, "--top", "2")
    told, found = result_of(out), av.patch(model, MOON, other, av.Logit("frog"))
    assert (code, f"{len(found)} of {len(found)} runs done" in err) == (0, True)
    assert told["number"] == pytest.approx(found.attrs["number"])
    assert told["held"].startswith("total effect")
    largest = found["effect"].abs().nlargest(2)
    assert [(row["layer"], row["head"]) for row in told["rows"]] == list(largest.index)
    assert [abs(row["effect"]) for row in told["rows"]] == pytest.approx(largest.tolist(), abs=1e-5)
    code, _, err = run(*words, "--other", "moon cheese ring")
    assert (code, "aligned" in err) == (REFUSED, True)


def test_effects_are_the_library_s_and_of_several_texts_the_mean_with_its_spread(run: Run, tmp_path: Path) -> None:
    model, other = av.load("induction"), "ring frog moon ring"
    assert isinstance(model, av.AttentionModel)
    words = ("effects", "--model", "induction", "--token", "frog", "--format", "json")
    code, out, err = run(*words, "--probability", "--to", "zero", "--top", "2", MOON)
    told, found = result_of(out), av.effects(model, MOON, av.Probability("frog"), to="zero")
    assert (code, "text 1 of 1: 8 of 8 heads done" in err) == (0, True)
    assert (told["number"], told["to"]) == (pytest.approx(found.attrs["number"]), "zero")
    assert [(row["layer"], row["head"]) for row in told["rows"]] == list(found.index[:2])
    (tmp_path / "texts.txt").write_text(f"{other}\n\n", "utf-8")
    told = result_of(run(*words, MOON, "--texts", str(tmp_path / "texts.txt"))[1])
    one, two = (av.effects(model, text, av.Logit("frog")).sort_index() for text in (MOON, other))
    mean, rows = (one["effect"] + two["effect"]) / 2, told["rows"]
    assert (told["texts"], told["number"]) == (2, pytest.approx((one.attrs["number"] + two.attrs["number"]) / 2))
    assert [abs(row["effect"]) for row in rows] == sorted((abs(row["effect"]) for row in rows), reverse=True)
    for row in rows:
        place = (row["layer"], row["head"])
        assert row["effect"] == pytest.approx(mean.loc[place])
        assert row["effect_spread"] == pytest.approx(abs(one["effect"] - two["effect"]).loc[place] / 2)
    refused(run(*words, MOON, "--probability", "--against", "ring"), "leave out --against", 2)


def test_several_texts_and_metrics_make_one_table_and_load_the_model_once(run: Run) -> None:
    other = "ring frog moon ring frog"
    model = av.load("induction")
    own = av.head_table([model.trace(MOON), model.trace(other)])
    names = ("--metric", "induction,previous", "--top", "3", "--format", "json")
    code, out, err = run("heads", MOON, other, "--model", "induction", *names)
    assert (code, err.count("Loading")) == (0, 1)
    columns = ["layer", "head"]
    columns += [name + ending for name in ("induction", "previous") for ending in ("", "_spread", "_n")]
    largest = own.nlargest(3, "induction").reset_index()[columns]
    pandas.testing.assert_frame_equal(pandas.DataFrame(rows_of(out)), largest)
    told = rows_of(run("findings", MOON, other, "--model", "induction", "--top", "1", "--format", "json")[1])
    assert [row["text"] for row in told] == [MOON, other]


def test_a_saved_trace_stands_for_a_text_everywhere_and_its_path_is_never_read_as_one(run: Run, tmp_path: Path) -> None:
    file, second = str(tmp_path / "moon.safetensors"), str(tmp_path / "second.safetensors")
    other = "moon cheese ring frog moon cheese"
    av.load("induction").trace(MOON).save(file)
    av.load("induction").trace(other).save(second)
    given, kept = ("--model", "induction"), ("--trace", file)
    token, json_ = ("--token", "frog"), ("--format", "json")
    asked: list[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = [
        (("heads",), (MOON,), ()),
        (("find", "moon", "cheese"), ("--text", MOON), ()),
        (("why", *token), ("--text", MOON), ()),
        (("effects", *token), (MOON,), ()),
        (("compare",), ("--text", MOON, "--other", other), ("--other-trace", second)),
        (("patch", *token), ("--text", MOON, "--other", other), ("--other-trace", second)),
    ]
    for command, text, more in asked:
        expected = run(*command, *text, *given, *json_)
        assert expected[0] == 0, expected
        assert run(*command, *kept, *more, *json_)[:2] == expected[:2]
    assert "Loading" not in run("heads", *kept)[2]
    # A file has no model, so its findings have no effects.
    from_file, from_text = (rows_of(run("findings", *some, *json_)[1]) for some in (kept, (MOON, *given)))
    assert from_file[0]["finding"] == from_text[0]["finding"]
    assert {one["effect"] for one in from_file} == {None}
    # A text beside a saved trace is read by the trace's model, where none is named.
    assert run("heads", other, *kept, *json_)[:2] == run("heads", other, *kept, *given, *json_)[:2]
    for command in (("compare",), ("patch", *token)):
        code, out, err = run(*command, *kept, "--other", other, *json_)
        assert (code, out) == run(*command, "--text", MOON, "--other", other, *given, *json_)[:2]
        assert err.count("Loading") == 1
    assert run("trace", *kept, "--out", str(tmp_path / "w.csv"))[0] == 0
    assert (tmp_path / "w.csv").read_bytes() == to_csv(av.load("induction").trace(MOON).table()).encode()
    refused(run("heads", file, *given), "is a file, not a text; .*--trace")
    renamed = tmp_path / "moon cheese"
    renamed.write_bytes(Path(file).read_bytes())
    refused(run("heads", str(renamed), *given), "moon cheese is a file, not a text; .*--trace")
    assert run("heads", "--trace", str(renamed), *json_)[0] == 0
    (tmp_path / "notes").write_text("no trace")
    assert run("findings", str(tmp_path / "notes"), "--model", "scratch")[0] == 0
    refused(run("heads", *kept, "--model", "scratch"), "is a trace of induction, not of scratch; leave out --model")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (("com",), {"compare", "completion"}),
        (("heads", "--fo"), {"--format"}),
        (("heads", "--format", ""), {"table", "csv", "json", "parquet"}),
        (("why", "--model", "ind"), {"induction"}),
        (("completion", "--he"), {"--help"}),
        (("completion", ""), {"bash", "zsh", "fish"}),
        (("verify", "all-M"), {"all-MiniLM-L6-v2"}),
    ],
)
def test_shells_complete_what_the_parser_takes(
    line: tuple[str, ...], expected: set[str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for shell in ("bash", "zsh"):
        monkeypatch.setenv("COMP_WORDS", shlex.join(("attention-viz", *line)))
        monkeypatch.setenv("COMP_CWORD", str(len(line)))
        monkeypatch.setenv(COMPLETE, f"{shell}_complete")
        code, out, err = run()
        words = {one.partition(",")[2] for one in out.splitlines() if one.startswith("plain,")}
        # zsh has a line each for a word's type, the word and what it is.
        words = words if shell == "bash" else set(out.splitlines()[1::3]) - {line[-1]}
        assert (code, words, err) == (0, expected, ""), shell


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(("line", "expected"), [("com", "compare completion"), ("verify all-M", "all-MiniLM-L6-v2")])
def test_a_shell_s_script_asks_the_program(line: str, expected: str, run: Run, tmp_path: Path) -> None:
    code, script, _ = run("completion", "bash")
    (tmp_path / "attention-viz").write_text(f'#!/bin/sh\nexec {shlex.join(PROGRAM)} "$@"\n')
    (tmp_path / "attention-viz").chmod(0o755)
    words = f"attention-viz {line}"
    # compopt works only inside of a completion that the shell itself began.
    ask = f"compopt() {{ :; }}\n{script}\nCOMP_WORDS=({words}); COMP_CWORD={len(line.split())}; "
    ask += '_attention_viz_completion attention-viz; echo "${COMPREPLY[@]}"'
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", ask], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert (code, done.stdout, done.stderr) == (0, f"{expected}\n", "")
    assert "complete -o nosort -F _attention_viz_completion attention-viz" in script
    for shell in ("zsh", "fish"):
        code, script, _ = run("completion", shell)
        assert code == 0 and f"{COMPLETE}={shell}_complete" in script and ("compinit" in script) == (shell == "zsh")


def test_models_takes_names_after_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    installed: list[str] = []
    monkeypatch.setattr("attention_viz.sources.install.install", lambda name, _: installed.append(name))
    monkeypatch.setattr("attention_viz.sources.install.installable", lambda *, here: ["here" if here else "all"])
    for words in (("--install",), ("--install", "a", "b"), ("--convert",), ("--install", "--format", "json")):
        assert run("models", *words) == (0, "", "")
    assert installed == ["all", "a", "b", "here", "all"]


def test_circuits_are_what_the_library_says(run: Run) -> None:
    model = av.load("induction")
    assert isinstance(model, av.AttentionModel)
    words = ("circuits", "--model", "induction", "--format", "json")
    code, out, _ = run(*words)
    found = av.circuits(model)
    assert code == 0
    assert [row["ov"] for row in rows_of(out)] == pytest.approx(found["ov"].tolist())
    told = rows_of(run(*words, "--layer", "1", "--head", "1", "--top", "2")[1])
    pairs = av.compositions(model, into=[(1, 1)])
    largest = pairs[["q", "k", "v"]].max(axis=1).nlargest(2)
    assert [max(row["q"], row["k"], row["v"]) for row in told] == pytest.approx(largest.tolist())
    assert [row["from_head"] for row in told] == pairs["from_head"][largest.index].tolist()
    assert "--layer and --head together" in run(*words, "--layer", "1")[2]
    code, _, err = run("circuits", "--model", "coreference")
    assert code == 0 and "ov: coreference does more" in err
    assert "pretrained model" in run("circuits", "--model", "scratch")[2]


def test_scan_is_the_library_s_and_says_how_to_go_on(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "texts.csv").write_text("body\nfrog ring frog\n\nmoon ring moon ring\n", "utf-8")
    words = ("scan", "induction", str(tmp_path / "texts.csv"), "--column", "body", "--out", str(tmp_path / "out"))
    options = ("--limit", "2", "--length", "20", "--layers", "1", "--sample", "2", "--workers", "1", "--format", "json")
    code, out, err = run(*words, *options)
    assert code == 0 and err.endswith("out: 2 texts, 0 of them cut, 0 unreadable\n")
    found = av.Scan.load(tmp_path / "out")
    assert (
        found.manifest["settings"] | {"length": 20, "layers": [1], "rows": 2, "limit": 2} == found.manifest["settings"]
    )
    assert [(row["layer"], row["head"], row["role"]) for row in rows_of(out)] == [
        (layer, head, role) for (layer, head), role in found.roles["role"].items()
    ]
    refused(run(*words), "is a scan with other settings")
    elsewhere = (words[0], "nowhere/no-model", str(tmp_path / "no.csv"), *words[3:])
    refused(run(*elsewhere), "corpus .*no.csv doesn't exist", NOT_FOUND)

    def interrupted(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("attention_viz.corpus.worker.Worker.run", interrupted)
    code, _, err = run(*words[:-1], str(tmp_path / "another"))
    assert code == 130 and "Stopped after 0 texts; repeat the command to continue" in err


def test_a_table_for_eyes_shows_tokens_as_people_read_them_and_files_keep_both(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = pandas.DataFrame({"token": ["ĠMary", None], "logit": [1.5, 2.0], "written": ["·Mary", None]})
    show(Answer("why", None, table=table), "table")
    assert capsys.readouterr().out == "token   logit\n·Mary  1.5000\n       2.0000\n"
    show(Answer("why", None, table=table), "csv")
    assert capsys.readouterr().out == 'token,logit,written\n"ĠMary",1.5,"·Mary"\n,2.0,\n'
    show(Answer("why", None, table=table), "json")
    assert json.loads(capsys.readouterr().out)["result"]["rows"][0] == {
        "token": "ĠMary",
        "logit": 1.5,
        "written": "·Mary",
    }


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--layer", "1"), 2, "--layer, --head, --query and --key together"),
        ((), 2, "--token"),
        (("--token", "moon", "--layer", "0"), 2, "--token"),
        (("--layer", "1", "--head", "1", "--query", "moon", "--key", "2"), REFUSED, "positions 1, 5"),
        (("--layer", "1", "--head", "1", "--query", "sun", "--key", "2"), REFUSED, "isn't in this text"),
        (("--token", "sunshine"), REFUSED, "no token 'sunshine'"),
        (("--token", ""), REFUSED, "token is empty"),
    ],
)
def test_why_refuses_what_is_no_number(words: tuple[str, ...], code: int, message: str, run: Run) -> None:
    found, _, err = run("why", "--text", MOON, "--model", "induction", *words)
    assert (found, message in err) == (code, True), err


def test_csv_gives_a_spreadsheet_nothing_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    evil = ["=1+1", "\u200b@x", 'a "b", c', "plain"]
    show(Answer("why", None, table=pandas.DataFrame({"word": evil, "weight": [0.1, 0.2, 0.3, math.nan]})), "csv")
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert rows[0] == ["word", "weight"]
    assert [row[0] for row in rows[1:]] == ["'=1+1", "'\u200b@x", 'a "b", c', "plain"]
    assert [row[1] for row in rows[1:]] == ["0.1", "0.2", "0.3", ""]


def test_a_table_gives_a_terminal_nothing_to_obey(capsys: pytest.CaptureFixture[str]) -> None:
    words = pandas.Series(["a\x1b[31m", "b\nc", "\udcff"], dtype=object)
    show(Answer("why", None, table=pandas.DataFrame({"word": words, "n": [1, 20, 300]})), "table")
    assert capsys.readouterr().out.splitlines() == [
        "word         n", "a\\x1b[31m    1", "b c         20", "\\udcff     300",
    ]  # fmt: skip


# verify


@pytest.mark.parametrize("words", [(), ("--text", "frog ring frog")])
def test_verify_tells_both_errors(words: tuple[str, ...], run: Run) -> None:
    code, out, err = run("verify", "induction", *words)
    assert (code, err) == (0, "Loading induction …\n")
    own = av.load("induction").verify(words[1] if words else av.CATALOGUE["induction"].examples[0])
    assert dict(line.split(maxsplit=1) for line in out.splitlines()) == {
        "output_error": f"{own.output_error:.3g}", "weight_error": f"{own.weight_error:.3g}",
        "bound": "1e-05", "reference": own.reference, "rule": "within 1e-05", "ok": "yes",
    }  # fmt: skip


def test_verify_is_a_failed_check_where_it_is_not_ok(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Fidelity(0.5, None, 1e-5, "another")
    monkeypatch.setattr(Scratch, "verify", lambda *_: wrong)
    code, out, _ = run("verify", "scratch")
    assert code == FAILED_CHECK
    assert dict(line.split(maxsplit=1) for line in out.splitlines()) == {
        "output_error": "0.5", "weight_error": "unmeasured", "bound": "1e-05", "reference": "another",
        "rule": "not within 1e-05", "ok": "no",
    }  # fmt: skip


# Refusals of the library's, and ends of other kinds


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("trace", "a", "--model", "scratch", "--out", "w.csv", "--layer", "7"), "layer 7"),
        (("trace", "a", "--model", "scratch", "--out", "w.csv", "--layer", "-1"), "layer -1"),
        (("trace", "a", "--model", "scratch", "--out", "w.csv", "--head", "9"), "head 9"),
        (("trace", "a", "--model", "scratch", "--out", "w.html", "--stream", "cross"), "'cross'"),
        (("trace", "a", "--model", "scratch", "--out", "w.csv", "--target", "b"), "encoder–decoder"),
        (("trace", "a", "--model", "induction", "--out", "w.csv", "--second", "b"), "second sentence"),
        (("heads", " ", "--model", "scratch"), "the text is empty"),
        (("find", "dog", "a", "--text", "a b", "--model", "scratch"), "“dog”"),
        (("verify", "scratch", "--text", ""), "the text is empty"),
        (("heads", "a \udcff", "--model", "scratch"), "invalid byte at position 2"),
        (("trace", "a", "--model", "scratch", "--out", "w.csv", "--target", "\udcff"), "invalid byte at position 0"),
    ],
)
def test_a_refusal_is_one_line_and_its_code(
    words: tuple[str, ...], message: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(run(*words), message)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_no_model_is_refused(run: Run, tmp_path: Path) -> None:
    refused(run("verify", str(tmp_path)), "config.json", NOT_FOUND)


def test_a_message_of_several_lines_is_told_in_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise AttentionVizError("first\n  second \x1b[2J")

    monkeypatch.setattr("attention_viz.sources.catalogue", refuse)
    assert run("models") == (REFUSED, "", "attention-viz: first second \\x1b[2J\n")


def test_ctrl_c_is_130_without_a_word(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("attention_viz.sources.catalogue", interrupt)
    assert run("models") == (130, "", "")


def test_ctrl_c_under_another_name_is_130_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as error:
            raise ModuleNotFoundError("could not import a module") from error

    monkeypatch.setattr("attention_viz.sources.catalogue", interrupt)
    assert run("models") == (130, "", "")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_that_is_not_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr("attention_viz.sources.catalogue", fail)
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        main(["models"])


@pytest.mark.parametrize("words", [("models",), ("models", "--format", "json")])
def test_a_closed_pipe_ends_quietly(words: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        done = subprocess.run([*PROGRAM, *words], cwd=ROOT, stdout=closed, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (141, b"")


# app


def test_the_app_answers_at_the_address_printed_and_ends_with_ctrl_c() -> None:
    port = serve.free_port()
    with subprocess.Popen(
        [*PROGRAM, "app", "--port", str(port)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as started:
        try:
            assert started.stdout and started.stderr
            address = started.stdout.readline().strip()
            assert address == f"http://127.0.0.1:{port}", started.stderr.read()
            with build_opener(ProxyHandler({})).open(f"{address}/_stcore/health", timeout=10) as answer:
                assert answer.status == 200
            refused(run_once("app", "--port", str(port)), rf"127\.0\.0\.1, port {port} \(.*in use.*--port")
            started.send_signal(signal.SIGINT)
            rest, told = started.communicate(timeout=30)
        finally:
            started.kill()
    assert (started.returncode, rest) == (130, "")
    assert "Traceback" not in told
    assert re.search(r"^Teacher's key for /class: [a-z2-9]{5}-[a-z2-9]{5}$", told, re.MULTILINE)
    assert not serve.is_taken(port)


def test_a_teachers_key_is_new_each_time_unless_the_operator_set_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATTENTION_VIZ_TEACHER", raising=False)
    assert len({new_teacher_key() for _ in range(20)}) == 20
    monkeypatch.setenv("ATTENTION_VIZ_TEACHER", "correct horse")
    assert new_teacher_key() == ""


def run_once(*words: str) -> tuple[int, str, str]:
    """A command in a process of its own."""
    done = subprocess.run([*PROGRAM, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_without_the_app_s_files_that_is_said(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "HOME", tmp_path)
    refused(run("app"), f"app.py and pages aren't in {re.escape(str(tmp_path))}")


def test_an_address_that_is_none_is_refused(run: Run) -> None:
    refused(run("app", "--host", "nowhere.invalid"), r"can\'t listen at nowhere.invalid, port 8501 \(")


# Pictures that a browser draws


def test_without_a_browser_png_and_pdf_are_refused_before_the_model_loads(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTENTION_VIZ_BROWSER", str(tmp_path / "none"))
    words = ("trace", "a b", "--model", "scratch", "--layer", "0", "--head", "1", "--out")
    for ending in (".png", ".pdf"):
        result = run(*words, str(tmp_path / f"w{ending}"))
        refused(result, rf"\{ending}, unlike \.svg, needs Chrome, Chromium or Edge.*none")
        assert "Loading" not in result[2]
    assert run(*words, str(tmp_path / "w.svg"))[0] == 0


def test_png_and_pdf_are_the_head_s_picture_as_a_browser_draws_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[str, tuple[str, ...]]] = []

    def draw(picture: str, forms: tuple[str, ...], *_: object, **__: object) -> dict[str, bytes]:
        drawn.append((picture, forms))
        return {form: form.encode() for form in forms}

    monkeypatch.setattr("attention_viz.views.export.save.printed", draw)
    monkeypatch.setattr("attention_viz.cli.files.needed", lambda _: "browser")
    words = ("trace", MOON, "--model", "induction", "--layer", "1", "--head", "2", "--out")
    for form in ("png", "pdf"):
        assert run(*words, str(tmp_path / f"w.{form}"))[0] == 0
        assert (tmp_path / f"w.{form}").read_bytes() == form.encode()
    own = heatmap_svg(av.load("induction").trace(MOON), 1, 2)
    assert drawn == [(own, ("png",)), (own, ("pdf",))]
