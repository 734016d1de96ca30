"""A hub model's size, and a button that downloads it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.serving import jobs
from attention_viz.serving.models import check_room
from attention_viz.ui import visit
from attention_viz.ui.parts.markdown import as_sentence, plain

if TYPE_CHECKING:
    from attention_viz.sources import Plan

__all__ = ["offer_download"]


def offer_download(model: str, plan: "Plan", place: DeltaGenerator) -> None:
    """Show the model's size and a download button, then progress."""
    check_room(plan.name, plan.bytes)
    download = jobs.download_of(model)
    with place:
        if download is not None and not download.over:
            _watch(model)
            return
        if download is not None and not download.problem:
            # It ended well after what is missing was counted.
            jobs.forget(model)
            visit.run_again()
        if download is not None:
            st.warning(as_sentence(download.problem))
        here = plan.bytes - plan.missing
        already = f", of which {_megabytes(here)} are on this machine already" if here else ""
        st.markdown(
            plain(
                f"{plan.name} at {plan.revision} ({plan.commit[:7]}) is on the hub: {len(plan.files)} files, "
                f"{_megabytes(plan.bytes)}{already}. It stays on this machine, for everybody here."
            )
        )
        st.button(f"Download {_megabytes(plan.missing)}", type="primary", on_click=_begin, args=(model, plan))


def _begin(model: str, plan: "Plan") -> None:
    visit.memory(_Begun).download = jobs.begin(model, plan)


@dataclass
class _Begun:
    """A visitor's download, which only they may cancel."""

    download: jobs.Download | None = None


@st.fragment(run_every=1.0)
def _watch(model: str) -> None:
    download = jobs.download_of(model)
    if download is None or download.over:
        if download is not None and not download.problem:
            jobs.forget(model)
        visit.run_again()
    plan = download.plan
    received = f"{_megabytes(download.received)} of {_megabytes(plan.missing)}"
    st.progress(download.share, text=plain(f"Downloading {plan.name}: {received}"))
    if visit.memory(_Begun).download is download:
        st.button("Cancel", on_click=download.cancel)


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count < 1e8 else f"{count / 1e6:,.0f} MB"
