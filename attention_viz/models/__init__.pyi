from .hub import Plan as Plan
from .hub import download as download
from .hub import plan as plan
from .loading.by_name import load as load
from .loading.snapshots import SNAPSHOTS as SNAPSHOTS
from .loading.snapshots import moments as moments
from .model import AttentionModel as AttentionModel
from .wrapping import wrap as wrap
