"""The tools for agents: a real server, the SDK's client, and models that ship."""

import asyncio
import base64
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from mcp.shared.exceptions import MCPError
from PIL import Image

import attention_viz as av
from attention_viz.cli.answers.kinds import schema_of
from tests.cli.agents.client import ROOT, ToolClient, Work, served
from tests.models.families import build
from tests.models.loading.test_load_folder import word_tokenizer

MOON, RING = "moon cheese frog ring moon cheese", "moon cheese ring ring moon cheese"
TOOLS = ["models", "trace", "findings", "heads", "find", "why", "effects", "patch", "picture"]
ODD = [
    "😀 moon",
    "שלום עולם",
    "a\u202eb c",
    "moon\x00 frog\x07",
    "a\x1b[2J b",
    "-",
    str(Path(__file__)),
    "</script> moon",
    "%s {0}",
]


Talk = Callable[[Work], None]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server's standard error; its folder is the one that the server runs in."""
    return tmp_path_factory.mktemp("mcp") / "log.txt"


@pytest.fixture(scope="module")
def shared(log: Path) -> Iterator[Talk]:
    """One server for most tests."""
    with served(log=log) as talk:
        yield talk


@pytest.fixture
def talk(shared: Talk, log: Path) -> Iterator[Talk]:
    """The server, which must not have failed inside."""
    before = len(log.read_text("utf-8"))
    yield shared
    assert "Traceback" not in log.read_text("utf-8")[before:]


def test_every_tool_answers_as_the_library_does(talk: Talk) -> None:
    model = av.load("induction")
    assert isinstance(model, av.AttentionModel)
    own, other = model.trace(MOON), model.trace(RING)

    async def work(tools: ToolClient) -> None:
        listed = (await tools.client.list_tools()).tools
        assert [one.name for one in listed] == TOOLS
        for one in listed:
            assert one.input_schema["additionalProperties"] is False and one.output_schema == schema_of(one.name)
        assert [row["name"] for row in (await tools.ask("models"))["result"]["rows"]] == list(av.CATALOGUE)

        made = await tools.ask("trace", model="induction", text=MOON)
        name, result = made["result"]["trace"], made["result"]
        assert result["ok"] and result["streams"] == [{"name": "decoder", "layers": [0, 1], "heads": [4, 4]}]
        assert [row["token"] for row in result["rows"]] == list(own.query_tokens().labels)
        assert name == await tools.trace(MOON), "the same text has the same id"

        rows = (await tools.ask("findings", trace=name, top=2))["result"]["rows"]
        assert [row["finding"] for row in rows] == [one.text for one in av.findings(own, 2)]
        rows = (await tools.ask("heads", trace=name, metric="induction", top=3))["result"]["rows"]
        assert [row["induction"] for row in rows] == pytest.approx(
            av.head_table(own)["induction"].nlargest(3).tolist(), abs=1e-5
        )
        rows = (await tools.ask("find", trace=name, query="cheese", key="moon", top=4))["result"]["rows"]
        assert [row["weight"] for row in rows] == pytest.approx(
            av.find_heads(own, "cheese", "moon")["weight"].head(4).tolist(), abs=1e-5
        )
        why = (await tools.ask("why", trace=name, token="frog", against="ring"))["result"]
        assert why["total"] == pytest.approx(av.decompose(model, own, av.Logit("frog", against="ring")).total, abs=1e-4)
        score = {"layer": 1, "head": 1, "query": "5", "key": "frog"}
        why = (await tools.ask("why", trace=name, **score, relative=True))["result"]
        assert why["total"] == pytest.approx(
            av.decompose(model, own, av.Score(1, 1, 5, 3, relative=True)).total, abs=1e-4
        )
        rows = (await tools.ask("effects", trace=name, token="frog", top=8, to="zero"))["result"]["rows"]
        effects = av.effects(model, own, av.Logit("frog"), to="zero")["effect"]
        assert [row["effect"] for row in rows] == pytest.approx(effects.tolist(), abs=1e-4)
        second = await tools.trace(RING)
        rows = (await tools.ask("patch", trace=name, other=second, token="frog", top=8))["result"]["rows"]
        patched = av.patch(model, own, other, av.Logit("frog"))["effect"]
        assert {(row["layer"], row["head"]): row["effect"] for row in rows} == pytest.approx(
            patched.to_dict(), abs=1e-4
        )

    talk(work)


def test_a_finding_leads_to_its_head_s_picture(talk: Talk) -> None:
    async def work(tools: ToolClient) -> None:
        name = await tools.trace("the animal did not cross the street because it was too tired", "coreference")
        best = (await tools.ask("findings", trace=name))["result"]["rows"][0]
        place = {"trace": name, "layer": best["layer"], "head": best["head"]}
        answer = await tools.ask("picture", **place)
        _, file = (await tools.client.call_tool("picture", place)).content
        drawn = file.resource.text
        assert ElementTree.fromstring(drawn).tag.endswith("svg") and file.resource.mime_type == "image/svg+xml"
        assert answer["result"]["bytes"] == len(drawn.encode()) <= 10_000
        assert f'width="{answer["result"]["width"]}"' in drawn
        sentence = await tools.refusal("picture", **{**place, "layer": 9})
        assert "layer 9" in sentence
        long = await tools.trace("moon frog " * 100, "scratch")
        sentence = await tools.refusal("picture", trace=long, layer=0, head=0)
        needed = re.search(r"characters=(\d+)", sentence)
        assert needed
        await tools.ask("picture", trace=long, layer=0, head=0, characters=int(needed[1]))

    talk(work)


@pytest.mark.browser
def test_a_picture_in_pixels_is_bounded(talk: Talk) -> None:
    async def work(tools: ToolClient) -> None:
        name = await tools.trace(MOON)
        place = {"trace": name, "layer": 1, "head": 1, "format": "png"}
        result = (await tools.ask("picture", **place))["result"]
        _, file = (await tools.client.call_tool("picture", place)).content
        with Image.open(io.BytesIO(base64.b64decode(file.data))) as image:
            assert image.size == (result["width"], result["height"])
            assert image.width <= 1920

    talk(work)


def test_a_long_answer_is_cut_and_says_how_to_get_the_rest(talk: Talk) -> None:
    async def work(tools: ToolClient) -> None:
        text = "frog ring moon cheese " * 40 + "end"
        cut = await tools.ask("trace", model="scratch", text=text)
        shown = len(cut["result"]["rows"])
        assert 0 < shown < 161 and f"The last {161 - shown} of 161 rows are left out" in cut["cut"]
        assert cut["result"]["text"].endswith("…") and len(cut["result"]["text"]) == 201
        needed = re.search(r"characters=(\d+)", cut["cut"])
        assert needed
        whole = await tools.ask("trace", model="scratch", text=text, characters=int(needed[1]))
        assert len(whole["result"]["rows"]) == 161 and "cut" not in whole
        assert whole["result"]["text"] == text and whole["result"]["rows"][:shown] == cut["result"]["rows"]
        small = await tools.ask("trace", model="scratch", text=text, characters=3_000)
        assert 0 < len(small["result"]["rows"]) < shown
        await tools.ask("trace", model="scratch", text="w" * 40_000)

    talk(work)


def test_errors_are_sentences(talk: Talk, log: Path) -> None:
    (log.parent / "secret.txt").write_text("a secret word", "utf-8")

    async def work(tools: ToolClient) -> None:
        name = await tools.trace(MOON)
        for call, arguments, message in (
            ("trace", {"model": "induction"}, "text is missing"),
            ("trace", {"text": "a"}, "model is missing"),
            ("trace", {"model": "induction", "text": ""}, "empty"),
            ("trace", {"model": "induction", "text": 3}, "text must be a text; got 3"),
            ("trace", {"model": "induction", "text": ["a"]}, "must be a text"),
            ("trace", {"model": "induction", "text": "a", "file": "x"}, "unknown argument 'file'; choose from model"),
            ("trace", {"model": "induction", "text": "w" * 60_000}, "60,000 characters; give 50,000 at most"),
            ("trace", {"model": "scratch", "text": "moon " * 2_000}, "2,000 tokens; 1,024 are read at most"),
            ("trace", {"model": "induction", "text": "moon " * 200}, "201 tokens; 64 are read at most"),
            ("trace", {"model": "all-MiniLM-L6-v2", "text": "a", "second": "b " * 600}, "too many tokens|at most"),
            ("trace", {"model": "dinov2-small", "text": "a"}, "dinov2-small reads images; the tools pass texts"),
            ("trace", {"model": "shapes", "text": "a"}, "reads text with images; the tools pass texts"),
            ("trace", {"model": "nothing", "text": "a"}, "switched off hub ids"),
            ("trace", {"model": "owner/name", "text": "a"}, "switched off hub ids"),
            ("trace", {"model": str(log.parent), "text": "a"}, "switched off folders"),
            ("trace", {"model": "../models", "text": "a"}, "switched off folders"),
            ("trace", {"model": "x" * 300, "text": "a"}, "300 characters"),
            ("trace", {"model": "a\x1b[2J\u202e", "text": "a"}, r"hub"),
            ("trace", {"model": "induction", "text": "moon", "target": "a"}, "isn't an encoder–decoder"),
            ("trace", {"model": "induction", "text": "moon", "second": "a"}, "no pairs of sentences"),
            ("findings", {"trace": "t0"}, "no trace “t0”; make one with the tool trace"),
            ("findings", {"trace": "secret.txt"}, "no trace"),
            ("findings", {"trace": name, "top": 0}, "top must be from 1 to 10000; got 0"),
            ("findings", {"trace": name, "top": True}, "top must be a whole number; got True"),
            ("findings", {"trace": name, "top": 1.5}, "whole number"),
            ("findings", {"trace": name, "characters": 10}, "characters must be from 3000"),
            ("heads", {"trace": name, "top": 1}, "metric is missing"),
            ("heads", {"trace": name, "metric": "induction"}, "top is missing"),
            ("heads", {"trace": name, "metric": "beauty", "top": 1}, "unknown metric 'beauty'; choose from entropy"),
            ("heads", {"trace": name, "metric": "reach", "top": 1}, "give stream=mixer"),
            ("heads", {"trace": name, "metric": "entropy", "top": 1, "stream": "cross"}, "cross"),
            ("find", {"trace": name, "query": "sun", "key": "moon"}, "isn't in this text"),
            ("why", {"trace": name}, "give token, or layer, head, query and key together"),
            ("why", {"trace": name, "token": "frog", "layer": 1}, "give token, or"),
            ("why", {"trace": name, "layer": 1, "head": 1, "query": "moon", "key": "2"}, "positions 1, 5"),
            ("why", {"trace": name, "token": "sunshine"}, "no token 'sunshine'"),
            ("why", {"trace": name, "token": "frog", "position": 10**12}, "position"),
            ("effects", {"trace": name, "token": "frog", "probability": True, "against": "ring"}, "leave out against"),
            ("effects", {"trace": name, "token": "frog", "to": "none"}, "unknown to 'none'; choose from mean, zero"),
            ("patch", {"trace": name, "other": name, "token": "frog", "confirm": -1}, "confirm must be 0 or more"),
            ("picture", {"trace": name, "layer": 0, "head": 99}, "head 99"),
            ("picture", {"trace": name, "layer": 0, "head": 0, "format": "pdf"}, "choose from svg, png"),
        ):
            assert re.search(message, await tools.refusal(call, **arguments)), (call, arguments)
        scratch = await tools.trace("a b", "scratch")
        assert "pretrained" in await tools.refusal("effects", trace=scratch, token="a")
        assert "one model" in await tools.refusal("patch", trace=name, other=scratch, token="frog")
        with pytest.raises(MCPError, match="unknown tool 'nothing'; choose from models"):
            await tools.client.call_tool("nothing", {})
        await tools.ask("findings", trace=name)

    talk(work)


def test_odd_texts_are_texts(talk: Talk) -> None:
    async def work(tools: ToolClient) -> None:
        for text in ODD:
            for model in ("scratch", "all-MiniLM-L6-v2"):
                answer = await tools.ask("trace", model=model, text=text)
                assert answer["result"]["text"] == text
                place = {"trace": answer["result"]["trace"], "layer": 0, "head": 0, "characters": 100_000}
                await tools.ask("findings", trace=answer["result"]["trace"])
                _, file = (await tools.client.call_tool("picture", place)).content
                ElementTree.fromstring(file.resource.text)
        long = "word " * 900
        assert (await tools.ask("trace", model="scratch", text=long, characters=1_000_000))["result"]["text"] == long

    talk(work)


def test_streams_and_mixers_are_listed_and_chosen(talk: Talk) -> None:
    async def work(tools: ToolClient) -> None:
        made = (await tools.ask("trace", model="translation", text="the cat sees the dog"))["result"]
        assert [one["name"] for one in made["streams"]] == ["encoder", "decoder", "cross"]
        assert {row["stream"] for row in made["rows"]} == {"encoder", "decoder", "cross"}
        assert "stream" in await tools.refusal("heads", trace=made["trace"], metric="entropy", top=1)
        await tools.ask("heads", trace=made["trace"], metric="entropy", top=1, stream="cross")
        answer = await tools.ask("trace", model="recall", text=av.CATALOGUE["recall"].examples[0])
        assert answer["notes"] and [one["name"] for one in answer["result"]["streams"]] == ["decoder", "mixer"]
        await tools.ask("heads", trace=answer["result"]["trace"], metric="reach", top=1, stream="mixer")

    talk(work)


def test_calls_run_beside_each_other_and_a_cancelled_one_ends(talk: Talk) -> None:
    async def work(tools: ToolClient) -> None:
        name = await tools.trace("When Mary and John went to the store, John gave a drink to", "SmolLM2-135M-Instruct")
        slow = asyncio.create_task(tools.client.call_tool("effects", {"trace": name, "token": " Mary"}))
        await asyncio.sleep(0)
        assert len((await tools.client.list_tools()).tools) == len(TOOLS)
        await tools.ask("find", trace=name, query="to", key="Mary")
        assert not slow.done(), "listing and another call were answered first"
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        names = await asyncio.gather(*(tools.trace(f"moon frog ring {word}") for word in MOON.split()))
        assert len(set(names)) == 4, "equal texts have equal ids"
        assert len(await asyncio.gather(*(tools.ask("findings", trace=one) for one in names))) == 6

    talk(work)


def test_a_call_ends_after_its_time(tmp_path: Path) -> None:
    async def work(tools: ToolClient) -> None:
        # It takes longer to load torch alone.
        assert (await tools.refusal("trace", model="SmolLM2-135M-Instruct", text="a b")).startswith("stopped after 1 s")
        assert len((await tools.client.list_tools()).tools) == len(TOOLS)

    with served("--seconds", "1", log=tmp_path / "log.txt") as talk:
        talk(work)


def test_an_older_protocol_and_a_folder_that_the_operator_allowed(tmp_path: Path) -> None:

    mine = tmp_path / "models" / "mine"
    build("bert with a head").save_pretrained(mine)
    word_tokenizer().save_pretrained(mine)
    (tmp_path / "other").mkdir()

    async def work(tools: ToolClient) -> None:
        assert "none" in await tools.refusal("trace", model="./none", text="a")
        assert "folder" in await tools.refusal("trace", model="../other", text="a")
        assert "hub ids" in await tools.refusal("trace", model="owner/name", text="a")
        assert any("mine" in note for note in (await tools.ask("models"))["notes"])
        name = await tools.trace("the cat sat", "mine")
        await tools.ask("heads", trace=name, metric="previous", top=1)

    with served("--models", str(tmp_path / "models"), log=tmp_path / "log.txt", mode="legacy") as talk:
        talk(work)
    assert "Traceback" not in (tmp_path / "log.txt").read_text("utf-8")


def test_a_cancelled_load_serves_others_and_an_evicted_trace_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTENTION_VIZ_TRACE_MEMORY", "1")

    async def work(tools: ToolClient) -> None:
        first, second = (asyncio.create_task(tools.trace(word, "SmolLM2-135M-Instruct")) for word in ("one", "two"))
        await tools.client.list_tools()  # answered after both have begun
        first.cancel()
        assert await second, "the model that the cancelled call was loading"
        name = await tools.trace(MOON)
        before = await tools.ask("why", trace=name, token="frog")
        for word in ("frog", "ring", "moon", "cheese"):
            await tools.trace(f"{word} " * 300, "all-MiniLM-L6-v2")
        assert await tools.ask("why", trace=name, token="frog") == before

    with served(log=tmp_path / "log.txt") as talk:
        talk(work)


def test_only_the_protocol_is_on_standard_output(tmp_path: Path) -> None:
    hello = {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }  # fmt: skip
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
         "params": {"name": "trace", "arguments": {"model": "all-MiniLM-L6-v2", "text": "-"}}},
    ]  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-m", "attention_viz", "mcp"],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as server:  # fmt: skip
        assert server.stdin and server.stdout
        for message in messages:
            server.stdin.write(json.dumps(message) + "\n")
        server.stdin.write("this isn't JSON\n")
        server.stdin.flush()
        lines = [json.loads(server.stdout.readline()) for _ in range(2)]
        server.stdin.close()
        rest = server.stdout.read()
    found = {line["id"]: line for line in [*lines, *map(json.loads, rest.splitlines())] if line.get("id")}
    assert all(line["jsonrpc"] == "2.0" for line in found.values())
    assert found[2]["result"]["structuredContent"]["result"]["text"] == "-"
    assert server.returncode == 0 and not [*tmp_path.iterdir()]


def test_without_the_extra_the_command_names_it() -> None:
    hidden = "import sys; sys.modules.update({'mcp': None, 'mcp_types': None})\n"
    code = f"{hidden}from attention_viz.cli import main; sys.exit(main(['mcp']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("attention-viz: ") and 'run pip install "attention-viz[mcp]"' in line


def test_the_command_line_loads_no_protocol() -> None:
    code = "import sys, attention_viz.cli; print(*[one for one in sys.modules if one.partition('.')[0] == 'mcp'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
