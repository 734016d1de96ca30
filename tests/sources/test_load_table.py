"""The operator's file of load options is read whole or refused by name."""

from pathlib import Path

import pytest

from attention_viz.serving import models
from attention_viz.serving.settings import Settings
from attention_viz.sources.load_options import LoadOptions
from attention_viz.sources.load_table import read_load_table


def test_each_model_has_its_own_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "models.toml"
    file.write_text(
        '[models."induction"]\ndtype = "float64"\n'
        '[models."large"]\ndevice = "sequential"\nquantization = "int8"\nmax_memory = {cpu = "10GiB", "cuda:1" = 5}\n'
        '[models."spread".device]\n"model.layers.0" = "cpu"\n'
    )
    monkeypatch.setenv("ATTENTION_VIZ_LOAD_OPTIONS", str(file))
    found = Settings.from_environment().load_options
    assert found["induction"] == LoadOptions(dtype="float64")
    assert found["large"] == LoadOptions("sequential", "auto", "int8", {"cpu": "10GiB", "cuda:1": 5})
    assert found["spread"].device == {"model.layers.0": "cpu"}
    assert Settings.from_environment() == Settings(load_options=found)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[models", "isn't valid TOML"),
        ("[other]", r"may hold tables \[models.\"name\"\] alone, but it has 'other'"),
        ("models = 3", "models isn't a table"),
        ("[models]\nmine = 3", r'\[models."mine"\]: it must be a table'),
        ('[models."mine"]\nprecision = "int8"', "unknown key 'precision'; choose device, dtype"),
        ('[models."mine"]\ndtype = 16', "dtype must be a text; got 16"),
        ('[models."mine"]\ndtype = "float8"', "unknown dtype 'float8'; choose auto"),
        ('[models."mine"]\nquantization = "int2"', "unknown quantization 'int2'"),
        ('[models."mine"]\ndevice = "a b"', "unknown device 'a b'"),
        ('[models."mine"]\nmax_memory = {cpu = "ten"}', "a memory limit is a number of bytes"),
        ('[models."mine"]\nmax_memory = "10GB"', "max_memory must name devices"),
    ],
)
def test_a_bad_file_is_refused_at_the_start(
    content: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "models.toml"
    file.write_text(content)
    with pytest.raises(ValueError, match=message) as refused:
        read_load_table(file)
    assert "models.toml" in str(refused.value)
    monkeypatch.setenv("ATTENTION_VIZ_LOAD_OPTIONS", str(file))
    with pytest.raises(ValueError, match=message):
        Settings.from_environment()


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"can't read .*none\.toml: No such file"):
        read_load_table(tmp_path / "none.toml")


def test_the_app_loads_a_model_as_the_operator_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "SETTINGS", Settings(load_options={"induction": LoadOptions(dtype="float64")}))
    model = models.open_source(models.find("induction"))
    assert model.trace("moon cheese frog").provenance.dtype == "float64"
    other = models.open_source(models.find("coreference"))
    assert other.trace("the cat").provenance.dtype == "float32"
