"""Download from the hub, under the names that users import: `plan` and `download`."""

from attention_viz.sources.download import download
from attention_viz.sources.hub import Plan, plan

__all__ = ["Plan", "download", "plan"]
