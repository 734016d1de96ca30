"""What the Heads page reads from an address and writes back."""

from attention_viz.analysis.metrics import METRICS, metrics_for
from attention_viz.analysis.roles import ROLES
from attention_viz.analysis.search import DETECTORS
from attention_viz.trace.kind import Unit
from attention_viz.ui.address.codec import modernised, read, write
from attention_viz.ui.pages.heads.choice import ROLE_NAMES, HeadsChoice
from attention_viz.ui.pages.heads.page import split_texts
from tests.ui.screens import Screen


def test_an_address_is_read_and_written_back() -> None:
    asked = {"metric": "next", "view": "map", "search": "pattern", "pattern": "5-abc", "texts": "one\ntwo"}
    asked["query_word"] = ""
    choice, notices = read(HeadsChoice(), asked, DETECTORS)
    assert choice == HeadsChoice(**asked)
    assert asked.items() <= write(choice).items() and notices == []


def test_the_words_of_a_link_of_before_are_read_by_their_new_names() -> None:
    address = modernised([HeadsChoice], {"query": "it", "key": "cat", "metric": "next"})
    assert address == {"query_word": "it", "key_word": "cat", "metric": "next"}


def test_what_is_not_there_is_told() -> None:
    choice, notices = read(HeadsChoice(), {"view": "3d", "metric": "next"}, DETECTORS)
    assert choice == HeadsChoice(metric="next")
    assert notices == [
        "The URL asks for view “3d”. Allowed here: roles, patterns, silenced, colours, scatter, map. Shown "
        "instead: roles."
    ]


def test_more_texts_are_the_lines_with_something_in_them() -> None:
    assert split_texts(" one \n\n\t\ntwo") == ["one", "two"]
    assert split_texts("") == []


def test_an_address_edited_by_hand_is_answered_in_words_and_keeps_the_rest() -> None:
    wrong = "metric=%3Cb%3Espeed&beside=x&view=3d&query=%3Cscript%3E&key=&search=words&texts=&pattern=7-x"
    screen = Screen().open(f"/heads?{wrong}")
    for part in ("metric “<b>speed”", "beside “x”", "view “3d”"):
        assert any(part in one for one in screen.warnings)
    assert "Type the query word and the key word" in screen.words
    assert "are for 7 tokens; this text has 9" in screen.pick("Search by", "pattern").words
    screen = Screen().open("/heads?text=+&metric=next&query=it&key=cat&view=patterns")
    kept = {"metric": "next", "query_word": "it", "key_word": "cat", "view": "patterns"}
    assert kept.items() <= screen.address.items()


def test_a_role_is_one_of_the_library_s_and_a_link_that_names_a_metric_alone_shows_it() -> None:
    assert tuple(ROLES) == ROLE_NAMES
    screen = Screen().open("/heads?model=induction&text=moon+ring+moon+ring&metric=next")
    assert screen.channel("heads-grid")["view"] == screen.address["view"] == "colours"
    assert list(screen.picker("Metric").options) == [METRICS[name].label for name in metrics_for(Unit.WORD)]
    screen = Screen().open("/heads?model=induction&text=moon+ring+moon+ring&role=induction&metric=next&view=roles")
    assert screen.channel("heads-grid")["role"] == screen.address["role"] == "induction"
    assert screen.channel("heads-grid")["view"] == "roles"
