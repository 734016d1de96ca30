import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import attention_viz as av
from attention_viz.serving.permissions import kind
from attention_viz.serving.settings import SETTINGS, Settings
from attention_viz.sources import CATALOGUE, of_text
from attention_viz.ui.address import DEFAULT, State, opened_on, read_address, write_address
from tests.shipped import shown


def test_an_empty_address_opens_on_a_ready_example() -> None:
    state, notices = read_address({})
    assert state == DEFAULT
    assert state.text == "The bank of the river was flooded"
    assert notices == []


@given(
    st.builds(
        State,
        model=st.sampled_from(sorted(of_text())),
        text=st.text(max_size=200),
        d_model=st.integers(1, 512),
        heads=st.integers(1, 16),
        seed=st.integers(0, 9999),
        positions=st.sampled_from(["sinusoidal", "none"]),
        layer=st.integers(0, 5),
        head=st.integers(0, 11),
    )
)
def test_an_address_reproduces_what_was_chosen(state: State) -> None:
    state = state.within()
    if not state.own:
        state = State(model=state.model, text=state.text, layer=state.layer, head=state.head)
    assert read_address(write_address(state)) == (state, [])


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("layer", "99"),
        ("layer", "-1"),
        ("layer", "１"),
        ("layer", ""),
        ("layer", "0x1"),
        ("layer", "9" * 5000),
        ("head", "-3"),
        ("head", "12"),
        ("head", "4.0"),
        ("model", "../../etc/passwd"),
        ("model", "<script>alert(1)</script>"),
        ("model", ""),
        ("seed", "10000"),
        ("d_model", "0"),
        ("positions", "learned"),
    ],
)
def test_a_part_of_an_address_that_cannot_be_had_is_named_and_the_rest_is_kept(name: str, given: str) -> None:
    state, notices = read_address({"text": "kept", name: given})
    assert state == State(text="kept")
    (notice,) = notices
    assert f"asks for {name} " in notice
    assert "Allowed here" in notice
    assert len(notice.replace(", ".join(CATALOGUE), "")) < 294  # short, however many models there are to name


@given(st.dictionaries(st.sampled_from([*State.__dataclass_fields__, "other"]), st.text(max_size=30)))
def test_whatever_stands_in_an_address_the_state_can_be_shown(parameters: dict[str, str]) -> None:
    state, _ = read_address(parameters)
    assert state.model in CATALOGUE or kind(state.model) == "hub"
    assert state.layer in state.layers
    assert 0 <= state.head < state.head_count


def test_a_text_too_long_for_a_link_is_left_out_of_the_address() -> None:
    assert "text" in write_address(State(text="a" * SETTINGS.longest_link))
    assert "text" not in write_address(State(text="a" * (SETTINGS.longest_link + 1)))


def test_a_model_with_fewer_heads_moves_the_choice_to_its_last() -> None:
    assert State(model="scratch", heads=3, layer=5, head=11).within() == State(
        model="scratch", heads=3, layer=0, head=2
    )


def test_an_operator_sets_limits_by_environment_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_VIZ_FORWARDS_AT_ONCE", "7")
    assert Settings.from_environment() == Settings(forwards_at_once=7)


def test_an_operator_names_the_folders_and_switches_ways_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTENTION_VIZ_MODELS", os.pathsep.join([str(tmp_path / "a"), "b", ""]))
    assert Settings.from_environment().models == (tmp_path / "a", tmp_path / "b")
    for off in ("off", "", "OFF"):
        monkeypatch.setenv("ATTENTION_VIZ_MODELS", off)
        assert Settings.from_environment().models == ()
    monkeypatch.setenv("ATTENTION_VIZ_HUB", "off")
    assert not Settings.from_environment().hub
    monkeypatch.setenv("ATTENTION_VIZ_HUB", "perhaps")
    with pytest.raises(ValueError, match="ATTENTION_VIZ_HUB must be on or off; got 'perhaps'"):
        Settings.from_environment()


@pytest.mark.parametrize("given", ["0", "-2", "many", "", "1.5"])
def test_a_limit_that_is_no_whole_number_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("ATTENTION_VIZ_LONGEST_TEXT", given)
    with pytest.raises(ValueError, match="ATTENTION_VIZ_LONGEST_TEXT must be"):
        Settings.from_environment()


@pytest.mark.parametrize("name", ["dinov2-small", "whisper-tiny.en"])
def test_pickers_show_from_the_start_the_head_of_the_examples_first_finding(name: str) -> None:
    first = av.findings(shown(name, CATALOGUE[name].samples[0]))[0]
    head = {"layer": first.layer, "head": first.head, "stream": first.stream}
    assert opened_on(name).items() <= head.items()
