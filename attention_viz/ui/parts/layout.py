"""Where things stand on a page, beyond what Streamlit arranges: room kept while parts arrive, and narrow screens."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.ui.parts.themes import theme_name

__all__ = ["arranged"]

# Each part has its height from the first moment, so that nothing jumps while the others arrive. On a narrow screen
# everything above the picture moves together, so that the picture begins on the first screen.
#
# The page itself comes before its style, which the browser fetches a script for. Until that is there, the page is one
# pixel high: what was placed without the style would move once it comes. Each kind of widget is a script of its own:
# until it is there a bar stands in, which above the picture takes no more room than the widget will.
#
# On light cells Plotly writes in a grey that is hard to read on the darker of them; and where cells are small, as on a
# phone, in letters too small to be read.
_STYLE = """<style>
.st-key-page,
[data-testid="stLayoutWrapper"]:has(> .st-key-page) {
  flex: none;
  height: auto;
  overflow: visible;
}
@media (prefers-reduced-motion: reduce) {
  *, ::before, ::after {
    animation-duration: 1ms !important;
    animation-iteration-count: 1 !important;
    scroll-behavior: auto !important;
    transition-duration: 1ms !important;
  }
}
[data-testid="stCaptionContainer"] { color: inherit; opacity: 0.72; }
.st-key-theme { display: none; }
.st-key-header { min-height: 40px; }
.st-key-pickers,
[data-testid="stLayoutWrapper"]:has(> .st-key-pickers) {
  flex: none;
  height: auto;
  min-height: 108px;
  overflow: visible;
}
:is(.st-key-header, .st-key-pickers, .st-key-bar, .st-key-steps-walk, .st-key-steps-switches, .st-key-mask-pickers,
  .st-key-heads-pickers, .st-key-compare-pickers)
  [data-testid="stSkeleton"] { height: 20px; }
.st-key-pickers :is(.st-key-way, .st-key-layer, .st-key-head) { min-height: 64px; }
.st-key-steps-switches > *,
.st-key-mask-pickers > * { min-height: 68px; }
.st-key-steps-walk { min-height: 40px; }
.st-key-mask-pickers { min-height: 90px; }
.st-key-heads-pickers { min-height: 68px; }
:is(.st-key-heads-view, .st-key-heads-search) { min-height: 32px; }
:is(.st-key-heads-view, .st-key-heads-search) [data-testid="stSkeleton"] { height: 32px; }
.st-key-heads-atlas { gap: 0; overflow: visible; }
.st-key-compare-pickers { min-height: 68px; }
.st-key-compare-pickers:has(.st-key-compare-text) { min-height: 97px; }
.st-key-compare-views { min-height: 500px; }
.st-key-views .stElementContainer:has(> .stEmpty) { display: none; }
.st-key-views > :not(:has(.st-key-candidates)) { flex: 1 1 0; min-width: 0; }
.st-key-pickers .st-key-texts { position: relative; }
.st-key-pickers .st-key-text { flex: 1 1 0; min-width: 0; }
.st-key-pickers .stElementContainer:has(> .stEmpty) { display: none; }
.st-key-pickers:has(.st-key-reading) [data-testid="stCaptionContainer"] { font-size: 13px; }
.st-key-pickers .st-key-added { pointer-events: none; }
.st-key-pickers [data-testid="stLayoutWrapper"]:has(> .st-key-added) {
  position: absolute;
  z-index: 1;
  top: 3px;
  left: 76px;
  right: 0;
  width: auto;
}
.st-key-pickers .st-key-texts:has(.st-key-beside) [data-testid="stLayoutWrapper"]:has(> .st-key-added) { right: 304px; }
.st-key-pickers .st-key-texts:has(.st-key-second) [data-testid="stLayoutWrapper"]:has(> .st-key-added) { right: 216px; }
.st-key-pickers .st-key-added .stElementContainer { width: 100% !important; }
.st-key-pickers :is(.st-key-added, .st-key-own-words) p { font-size: 12px; line-height: 16px; }
.st-key-pickers .st-key-own-words { flex: 1 1 0; }
.st-key-pickers .st-key-own-words .stElementContainer { width: 100% !important; }
.st-key-pickers .st-key-added p {
  overflow: hidden;
  text-align: right;
  text-overflow: ellipsis;
  white-space: nowrap;
}
.st-key-bar { column-gap: 8px; min-height: 40px; }
.heatmap-label text[style*="fill: rgb(68, 68, 68)"] { fill: #000 !important; }
.st-key-stage,
[data-testid="stLayoutWrapper"]:has(> .st-key-stage) {
  flex: none;
  height: auto;
  min-height: 600px;
  overflow: visible;
}
.st-key-pickers > *,
.st-key-stage > * { flex: none; height: auto; }
.st-key-downloads,
[data-testid="stLayoutWrapper"]:has(> .st-key-downloads) { display: contents; }
.heatmap-label text:is(
  [style*="font-size: 2"], [style*="font-size: 3"], [style*="font-size: 4"], [style*="font-size: 5"],
  [style*="font-size: 6"], [style*="font-size: 7"], [style*="font-size: 1px"]
) { display: none; }
@media (max-width: 640px) {
  .far { display: none; }
  .st-key-pickers .stColumn:has(.st-key-target) { grid-column: 1 / -1; }
  .st-key-pickers .stHorizontalBlock:has(.st-key-stream, .st-key-reading) .stColumn { grid-column: 1 / -1; }
  .st-key-pickers .stHorizontalBlock:has(> .st-key-reading) { flex-wrap: nowrap; }
  .st-key-pickers .st-key-reading { flex: 2 1 0 !important; min-width: 0; }
  .st-key-pickers .st-key-reading > * { width: 100% !important; }
  .st-key-cross > [data-testid="stLayoutWrapper"] > .stHorizontalBlock { gap: 8px; }
  .st-key-cross .stColumn:has(> * > * > .st-key-said, > * > .st-key-said),
  .st-key-cross .stColumn:has(> * > * > .st-key-said, > * > .st-key-said) > .stVerticalBlock { display: contents; }
  .st-key-cross [data-testid="stLayoutWrapper"]:has(> .st-key-said) { order: -1; width: 100%; }
  .st-key-cross [data-testid="stLayoutWrapper"]:has(> .st-key-alignment) { width: 100%; }
  .st-key-page { gap: 8px; }
  .st-key-header {
    display: grid;
    grid-template: 34px auto / 1fr auto auto;
    gap: 2px 8px;
    min-height: 88px;
  }
  .st-key-header > :nth-child(2) { grid-area: 2 / 1 / 3 / -1; }
  .st-key-header h4 { padding: 0; font-size: 17px; }
  .st-key-header button,
  .st-key-bar button { min-height: 32px; padding: 2px 8px; }
  .st-key-header p,
  .st-key-bar p { font-size: 13px; }
  .st-key-menu { flex-wrap: wrap; gap: 0; min-height: 52px; }
  .st-key-menu a { min-height: 26px; padding: 1px 5px; }
  .st-key-menu p { font-size: 12px !important; }
  .st-key-pickers,
  [data-testid="stLayoutWrapper"]:has(> .st-key-pickers) { min-height: 168px; }
  .st-key-pickers:has(.st-key-target) { min-height: 242px; }
  .st-key-pickers:has(.st-key-beside) { min-height: 262px; }
  .st-key-pickers:has(.st-key-reading) { min-height: 256px; }
  .st-key-pickers:has(.st-key-reading):has(.st-key-beside, .st-key-target) { min-height: 334px; }
  .st-key-pickers .stHorizontalBlock { gap: 4px 8px; }
  .st-key-pickers .stHorizontalBlock:has(> .stColumn) { display: grid; grid-template-columns: minmax(0, 1fr) 148px; }
  .st-key-pickers .stColumn { min-width: 0; width: auto; }
  .st-key-pickers .stColumn:first-child { grid-column: 1 / -1; }
  .st-key-pickers .stVerticalBlock { gap: 0; }
  .st-key-pickers .stHorizontalBlock:has(> .st-key-layer) { flex-wrap: nowrap; }
  .st-key-pickers .st-key-layer,
  .st-key-pickers .st-key-head { flex: 1 1 0 !important; min-width: 0; }
  .st-key-pickers .st-key-layer > *,
  .st-key-pickers .st-key-head > * { width: 100% !important; }
  .st-key-pickers .stElementContainer:has([data-testid="stCaptionContainer"]) {
    width: calc(100vw - 32px) !important;
    max-width: none;
  }
  .st-key-pickers [data-testid="stCaptionContainer"] { font-size: 13px; }
  .st-key-pickers :is(.st-key-text, .st-key-second, .st-key-target) { min-height: 74px; }
  .st-key-views { flex-direction: column; }
  .st-key-views > :not(:has(.st-key-candidates)) { flex: none; width: 100%; }
  .st-key-views:has(.st-key-candidates) { min-height: 1400px; justify-content: space-between; }
  .st-key-views .st-key-candidates { width: 100%; }
  .st-key-pickers .st-key-texts { flex-direction: column; gap: 4px; }
  .st-key-pickers .st-key-texts > *,
  .st-key-pickers .st-key-texts .st-key-beside { flex: none; width: 100%; }
  .st-key-pickers .st-key-texts [data-testid="stLayoutWrapper"]:has(> .st-key-added) {
    right: 0 !important;
    width: auto;
  }
  .st-key-pickers .st-key-texts .st-key-added .stElementContainer { width: 100% !important; }
  .st-key-pickers:has(.st-key-wording)
    .stColumn:not(:first-child)
    .stElementContainer:has([data-testid="stCaptionContainer"]) { width: 100% !important; }
  .st-key-pickers textarea { height: 48px !important; min-height: 48px; }
  .st-key-pickers [data-testid="stWidgetLabel"] { min-height: 20px; margin-bottom: 2px; }
  .st-key-own .stHorizontalBlock:has(> .stColumn) { display: grid; grid-template-columns: 1fr 1fr; gap: 4px 8px; }
  .st-key-pickers [data-testid="stLayoutWrapper"] { min-height: 0; }
  .st-key-own .stColumn { min-width: 0; width: auto; }
  .st-key-bar { gap: 4px 8px; min-height: 140px; align-content: start; }
  .st-key-bar .stElementContainer { max-height: 32px; }
  .st-key-page:has(.st-key-steps-walk) .st-key-bar { min-height: 104px; }
  .st-key-page:has(.st-key-heads-pickers) .st-key-bar { min-height: 104px; }
  .st-key-heads-pickers { display: grid; grid-template-columns: 1fr 1fr; gap: 4px 8px; min-height: 68px; }
  .st-key-heads-pickers > * { width: auto !important; min-width: 0; }
  .st-key-heads-view button { padding: 2px 8px; }
  .st-key-compare-pickers { display: grid; grid-template-columns: 1fr 1fr; gap: 4px 8px; min-height: 171px; }
  .st-key-compare-pickers > * { width: auto !important; min-width: 0; max-width: 100%; }
  .st-key-compare-pickers > :is(.st-key-compare-what, .st-key-compare-step),
  .st-key-compare-pickers > :has(.st-key-compare-what, .st-key-compare-other, .st-key-compare-step) {
    grid-column: 1 / -1;
  }
  .st-key-compare-pickers .st-key-compare-text { width: 100%; }
  .st-key-page:has(.st-key-compare-pickers) .st-key-bar { min-height: 140px; }
  .st-key-steps-walk { gap: 4px 8px; min-height: 156px; }
  .st-key-steps-step { min-height: 112px; }
  .st-key-steps-switches { gap: 4px 8px; }
  .st-key-mask-pickers { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 4px 8px; }
  .st-key-mask-pickers:has(.st-key-in_layer) { min-height: 162px; }
  .st-key-mask-pickers > *,
  .st-key-mask-pickers > * > .stVerticalBlock { width: auto; min-width: 0; }
  .st-key-mask-pickers > :has(.st-key-mask, .st-key-beside_text, .st-key-row, .st-key-drawing-board),
  .st-key-mask-pickers > .st-key-mask,
  .st-key-mask-pickers > .st-key-beside_text,
  .st-key-mask-pickers > .st-key-row { grid-column: 1 / -1; }
}
</style>"""


# Streamlit writes on the primary colour in white, which on dark pages, where that colour is light, can't be read.
_DARK = """<style>
[data-testid^="stBaseButton-primary"]:not(:disabled) * { color: #14171D; }
</style>"""


def arranged() -> DeltaGenerator:
    """The place where a page is written, so that each of its parts has its own from the first moment."""
    st.html(_STYLE + (_DARK if theme_name() == "dark" else ""))
    return st.container(key="page", height=1, border=False)
