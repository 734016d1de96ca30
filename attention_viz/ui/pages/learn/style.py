"""How the course looks: on the screen, in front of a room, on a phone, and on paper."""

__all__ = ["style"]

# A meaning stands below its term's line, as wide as the paragraph, so that it is never cut off; who reads without a
# pointer gets to it with the Tab key.
_SCREEN = """
:is(.st-key-page, .st-key-learn-screen, .st-key-learn-stage) > .stElementContainer:has(> .stEmpty) { display: none; }
.st-key-learn-top { min-height: 100px; }
.st-key-learn-top .st-key-text { min-height: 96px; }
.st-key-learn-top .st-key-learn-notation { min-height: 68px; }
:is(.st-key-learn-top, .st-key-learn-heading) [data-testid="stSkeleton"] { height: 20px; }
.st-key-learn-lessons [role="radiogroup"] { gap: 0; }
.st-key-learn-lessons label { padding: 3px 6px; border-radius: 6px; margin: 0; }
.st-key-learn-lessons label:has(input:checked) { background: rgba(128, 128, 128, 0.16); font-weight: 600; }
.st-key-learn-lessons p { font-size: 14px; }
.st-key-learn-lesson { display: none; }
.st-key-learn-heading { min-height: 46px; }
.st-key-learn-heading h4 { padding: 0; }
.st-key-learn-heading [data-testid="stMarkdownContainer"] { margin-bottom: 0; }
.st-key-learn-text p { position: relative; }
.st-key-learn-figure { min-height: 420px; }
.st-key-learn-printed { display: none; }
.learn-term { border-bottom: 2px dotted currentColor; cursor: help; border-radius: 2px; }
.learn-term:focus-visible { outline: 2px solid var(--st-primary-color, #6a3fb5); }
.learn-meaning {
  position: absolute;
  left: 0;
  right: 0;
  margin-top: 1.7em;
  z-index: 20;
  padding: 8px 12px;
  border-radius: 8px;
  background: #1a1d23;
  color: #fff;
  font-size: 14px;
  font-weight: 400;
  line-height: 1.4;
  visibility: hidden;
}
.learn-term:hover > .learn-meaning,
.learn-term:focus > .learn-meaning { visibility: visible; }
.learn-given { overflow-x: auto; margin-bottom: 12px; }
.learn-given table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
.learn-given caption { text-align: left; caption-side: top; padding: 0 0 4px; opacity: 0.8; white-space: nowrap; }
.learn-given :is(th, td) { border: 1px solid rgba(128, 128, 128, 0.4); padding: 3px 10px; text-align: right; }
.learn-given th { font-weight: 600; }
.st-key-learn-cells [data-testid="stButtonGroup"] { display: flex; align-items: center; margin-bottom: 4px; }
.st-key-learn-cells [data-testid="stWidgetLabel"] { flex: none; width: 84px; margin: 0; overflow-wrap: anywhere; }
.st-key-learn-cells :is([role="group"], [role="toolbar"], [data-testid="stButtonGroup"] > div) { flex-wrap: nowrap; }
.st-key-learn-cells [data-testid="stButtonGroup"] > :last-child { flex: 1; min-width: 0; }
.st-key-learn-cells button { flex: 0 1 84px; min-width: 0; width: 84px; padding: 2px 4px; min-height: 30px; }
.st-key-learn-cells button p { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; font-size: 13px; }
.st-key-learn-stage .st-key-learn-text p,
.st-key-learn-stage .st-key-learn-text li { font-size: clamp(16px, 2.45vh, 24px); line-height: 1.45; }
.st-key-learn-stage .st-key-learn-text .learn-meaning { font-size: 19px; }
.st-key-learn-stage .st-key-learn-text .katex { font-size: 1.05em; }
.st-key-learn-stage h4 { font-size: clamp(24px, 3.6vh, 34px); }
"""

_PHONE = """
@media (max-width: 640px) {
  .st-key-learn-lessons { display: none; }
  .st-key-learn-tools { display: grid; grid-template-columns: repeat(3, auto); justify-content: start; }
  .st-key-learn-tools > :first-child { grid-column: span 2; }
  .st-key-learn-tools > * { min-height: 40px; }
  .st-key-learn-lesson { display: flex; min-height: 68px; width: 100% !important; }
  .st-key-learn-lesson .stSelectbox { width: 100%; }
  .st-key-learn-text { min-height: 480px; }
  .st-key-learn-top { min-height: 240px; }
  .st-key-learn-figure { min-height: 380px; }
  .st-key-learn-heading { column-gap: 8px; flex-wrap: nowrap; }
  .st-key-learn-heading h4 { font-size: 19px; }
  .st-key-learn-screen .st-key-learn-heading { justify-content: flex-end; min-height: 36px; margin-top: -28px; }
  .st-key-learn-screen .st-key-learn-heading > :has(h4) { position: absolute; clip-path: inset(50%); }
  .st-key-learn-heading [data-testid="stCaptionContainer"] { display: none; }
  .st-key-learn-heading button { padding: 2px 8px; }
  .st-key-learn-stage .st-key-learn-text p { font-size: 19px; }
}
"""

# What is pressed has no place on paper; what was typed has.
_PAPER = """
@media print {
  @page { margin: 14mm; }
  html, body, #root, [data-testid="stApp"], [data-testid="stAppViewContainer"], [data-testid="stMain"] {
    position: static !important;
    height: auto !important;
    overflow: visible !important;
    background: #fff !important;
  }
  .st-key-page :is(
    .st-key-header, .st-key-learn-top, .st-key-learn-lessons, .st-key-learn-lesson, .st-key-learn-further,
    .st-key-learn-glossary, .st-key-learn-more, .st-key-learn-back-from, .st-key-learn-on,
    .st-key-learn-heading .stButton, .stFormSubmitButton, .learn-meaning
  ),
  [data-testid="stHeader"], [data-testid="stToolbar"], [data-testid="stStatusWidget"] { display: none !important; }
  .stColumn:has(> * > * > .st-key-learn-lessons, > * > .st-key-learn-lessons) { display: none !important; }
  .st-key-learn-printed { display: flex !important; }
  .st-key-page, .st-key-page * { color: #000 !important; }
  .st-key-page :is(p, label, table, .stAlert, [data-testid="stAlertContainer"]) { background: transparent !important; }
  .st-key-page :is(.stSelectbox, .stTextInput, .stRadio) * { background-color: transparent !important; }
  .st-key-page :is(.stSelectbox, .stTextInput) [role="group"],
  .st-key-page [data-testid="stTextInputRootElement"] { border-color: #999 !important; }
  .st-key-page ::placeholder { color: transparent !important; }
  .st-key-page .stRadio label > div:first-child { border: 1px solid #000 !important; }
  .st-key-page .stRadio label:has(input:checked) > div:first-child { background-color: #000 !important; }
  .st-key-page .st-key-learn-cells button { background: transparent !important; border-color: #999 !important; }
  .st-key-page .st-key-learn-cells button[aria-pressed="true"] { border: 3px solid #000 !important; font-weight: 700; }
  .learn-term { border: 0; }
  .st-key-learn-body > .stHorizontalBlock,
  .st-key-learn-screen .stHorizontalBlock { display: block !important; }
  .st-key-page .stColumn { width: 100% !important; }
  .st-key-learn-figure, .learn-given, .st-key-learn-answers p { break-inside: avoid; }
  .js-plotly-plot { PLOT }
}
"""


def style(*, dark: bool) -> str:
    """The style sheet; a picture made for a dark page is turned around on paper."""
    plot = "filter: invert(1) hue-rotate(180deg) brightness(1.08);" if dark else "filter: none;"
    return f"<style>{_SCREEN}{_PHONE}{_PAPER.replace('PLOT', plot)}</style>"
