"""The default second sentence: the example's own, or one with two words exchanged."""

import re
from itertools import combinations, pairwise

from attention_viz.ui.address import State, own_contrast, own_example

__all__ = ["contrast", "exchanged"]

# Of "Mary's" and "didn't" the parts, so that a name leaves its ending where it stands.
_WORD = re.compile(r"[^\W_]+")
# English words that hold a sentence together and say little alone: exchanged, they would leave no sentence.
_HOLD_TOGETHER = frozenset(
    "a about after all also am an and any are as at be because been before but by can could did do does for from had "
    "has have he her here him his how i if in into is it its may me might more most must my no nor not of off on once "
    "one only or our out over she should so some such than that the their them then there these they this those to too "
    "under until up us was we were what when where which while who whom why will with would yet you your "
    "s t d m ll re ve don doesn didn isn aren wasn weren hasn haven hadn won wouldn couldn shouldn mustn".split()
)
_ARTICLES = frozenset(("a", "an", "her", "his", "its", "my", "our", "the", "their", "your"))
# A text may say one word a thousand times: no more words than these are looked at in pairs.
_TRIED = 50


def contrast(state: State) -> str:
    """Return the default second sentence, made of the first one's words."""
    return own_contrast(state.model) if state.text == own_example(state.model) else exchanged(state.text)


def exchanged(text: str) -> str:
    """Swap two words: names, nouns after articles, content words, then any; unchanged if none differ."""
    words = list(_WORD.finditer(text))
    telling = [word for word in words if word[0].lower() not in _HOLD_TOGETHER]
    names = [word for word in telling if word[0][0].isupper() and not _begins(text, word.start())]
    named = [word for before, word in pairwise(words) if before[0].lower() in _ARTICLES and word in telling]
    # Of two that follow each other it looks as if one was left out and put in again: they have no counterparts.
    following = {(one.start(), other.start()) for one, other in pairwise(words)}
    for found, apart in ((names, True), (named, True), (telling, True), (telling, False), (words, False)):
        for one, other in combinations(found[:_TRIED], 2):
            follow = (one.start(), other.start()) in following
            if one[0].lower() != other[0].lower() and not (apart and follow):
                return f"{text[: one.start()]}{other[0]}{text[one.end() : other.start()]}{one[0]}{text[other.end() :]}"
    return text


def _begins(text: str, place: int) -> bool:
    """Return whether a sentence begins there, so any word has a capital."""
    before = text[:place].rstrip()
    return not before or before[-1] in ".!?:…"
