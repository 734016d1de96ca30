from .catalogue import CATALOGUE as CATALOGUE
from .catalogue import Entry as Entry
from .catalogue import catalogue as catalogue
from .catalogue import of_text as of_text
from .download import download as download
from .hub import Plan as Plan
from .hub import plan as plan
