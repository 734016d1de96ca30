"""What people call by a name of before still answers, and says its name of today."""

from typing import Any

import numpy
import pytest

import attention_viz as av

PICTURE = av.Picture(numpy.zeros((16, 16), dtype=numpy.uint8))
SOUND = av.Sound(numpy.zeros((800, 2), dtype=numpy.float32), 8_000)


@pytest.mark.parametrize("thing", [av.Provenance("m", "a", notes=("It was cut.",)), PICTURE, SOUND])
def test_notes_answer_to_their_name_of_before(thing: Any) -> None:
    with pytest.warns(DeprecationWarning, match=f"{type(thing).__name__}.told is called {type(thing).__name__}.notes"):
        assert thing.told == thing.notes


def test_the_wording_of_a_role_answers_to_its_name_of_before() -> None:
    role = av.ROLES["previous"]
    with pytest.warns(DeprecationWarning, match=r"Role\.told is called Role\.wording now"):
        assert role.told("patch") == role.wording("patch")
