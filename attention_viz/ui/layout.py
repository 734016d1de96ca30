"""Where things stand on a page, beyond what Streamlit arranges: room kept while parts arrive, and narrow screens."""

import streamlit as st

__all__ = ["arrange"]

# Each part has its height from the first moment, so that nothing jumps while the others arrive. On a narrow screen
# everything above the picture moves together, so that the picture begins on the first screen.
_STYLE = """<style>
.st-key-header { min-height: 40px; }
.st-key-pickers,
[data-testid="stLayoutWrapper"]:has(> .st-key-pickers) {
  flex: none;
  height: auto;
  min-height: 106px;
  overflow: visible;
}
.st-key-bar { min-height: 40px; }
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
@media (max-width: 640px) {
  .stMainBlockContainer > .stVerticalBlock { gap: 8px; }
  .st-key-header { display: grid; grid-template-columns: 1fr auto auto; gap: 4px 8px; min-height: 72px; }
  .st-key-header > :nth-child(2) { grid-area: 2 / 1 / 3 / -1; }
  .st-key-header h4 { padding: 0; font-size: 17px; }
  .st-key-header button,
  .st-key-bar button { min-height: 32px; padding: 2px 8px; }
  .st-key-header p,
  .st-key-bar p { font-size: 13px; }
  .st-key-menu { flex-wrap: nowrap; min-height: 32px; }
  .st-key-pickers,
  [data-testid="stLayoutWrapper"]:has(> .st-key-pickers) { min-height: 164px; }
  .st-key-pickers .stHorizontalBlock { gap: 4px 8px; }
  .st-key-pickers .stHorizontalBlock:has(> .stColumn) { display: grid; grid-template-columns: minmax(0, 1fr) 168px; }
  .st-key-pickers .stColumn { min-width: 0; width: auto; }
  .st-key-pickers .stColumn:first-child { grid-column: 1 / -1; }
  .st-key-pickers .stVerticalBlock { gap: 0; }
  .st-key-pickers .st-key-layer,
  .st-key-pickers .st-key-head,
  .st-key-pickers .st-key-layer > *,
  .st-key-pickers .st-key-head > * { width: 75px !important; min-width: 0; }
  .st-key-pickers textarea { height: 48px !important; min-height: 48px; }
  .st-key-pickers [data-testid="stWidgetLabel"] { min-height: 20px; margin-bottom: 2px; }
  .st-key-own .stHorizontalBlock:has(> .stColumn) { display: grid; grid-template-columns: 1fr 1fr; gap: 4px 8px; }
  .st-key-pickers [data-testid="stLayoutWrapper"] { min-height: 0; }
  .st-key-own .stColumn { min-width: 0; width: auto; }
  .st-key-bar { gap: 4px 8px; min-height: 140px; align-content: start; }
}
</style>"""


def arrange() -> None:
    """Keep each part's place on the page; takes none itself."""
    st.html(_STYLE)
