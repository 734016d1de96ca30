"""One head's page: its role's frequency, examples and numbers."""

from collections.abc import Mapping
from math import isnan, log2
from typing import Any

from markupsafe import Markup

from attention_viz.analysis.metrics import METRICS
from attention_viz.analysis.roles import ROLES, SHARES
from attention_viz.corpus.kinds import KINDS
from attention_viz.corpus.site.frame import rendered
from attention_viz.corpus.site.parts import Head, Site
from attention_viz.corpus.site.studied import near
from attention_viz.corpus.tables import DECILES, HOLDS, LEADING, TEXTS

# Of fewer pairs a lift says little.
_FEW = 300


def head_page(site: Site, head: Head) -> str:
    """Return the page."""
    leading = LEADING[head.role]
    mean, spread = (float(head.row.get(f"{leading}{ending}", float("nan"))) for ending in ("", "_spread"))
    return rendered(
        "head",
        site=site,
        head=head,
        role=ROLES[head.role],
        texts=_texts(site, head),
        leading=leading,
        metric=METRICS[leading],
        mean=mean,
        spread=spread,
        deciles=_deciles(head, leading),
        near=near(head),
        kinds=_kinds(head),
    )


def _texts(site: Site, head: Head) -> dict[str, Any] | None:
    if head.role not in SHARES:
        return None
    could, holds = (int(head.row.get(f"role {head.role}{ending}") or 0) for ending in (TEXTS, HOLDS))
    split = ((holds, "holds", "on"), (could - holds, "not", "off"), (site.texts - could, "can’t show it", "none"))
    return {"could": could, "holds": holds, "split": split}


def _deciles(head: Head, metric: str) -> list[tuple[str, str, float, float]]:
    """Return bars; none if no text has a number."""
    found = [float(head.row.get(f"{metric}_d{decile}", float("nan"))) for decile in DECILES]
    if all(isnan(one) for one in found):
        return []
    most = max([one for one in found if not isnan(one)] + [1e-9])
    return [("", f"{decile} %", max(0.0, one) / most, one) for decile, one in zip(DECILES, found, strict=True)]


def _kinds(head: Head) -> dict[str, Any]:
    known = {(str(one["query_kind"]), str(one["key_kind"])): one for one in head.kinds}
    queries, keys = ([name for name in KINDS if any(pair[side] == name for pair in known)] for side in (0, 1))
    lifts = [(query, [_lift(known.get((query, key))) for key in keys]) for query in queries]
    return {"names": keys, "lifts": lifts, "few": _FEW}


def _lift(one: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Colour twice chance fully, half of it grey."""
    if one is None:
        return None
    value, pairs = float(one["lift"]), int(one["pairs"])
    found = {"value": value, "pairs": pairs, "short": f"{pairs / 1_000:.1f}k" if pairs >= 1_000 else str(pairs)}
    if pairs < _FEW or isnan(value):
        return found | {"side": "few", "style": ""}
    depth = max(-1.0, min(1.0, log2(max(value, 0.05))))
    return found | {"side": "more" if depth >= 0 else "less", "style": Markup(f' style="--d:{abs(depth):.2f}"')}
