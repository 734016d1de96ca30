from .page import Explorer as Explorer
from .page import explore as explore
from .payload import Choice as Choice
from .payload import pack as pack
from .source import channel_source as channel_source
from .source import component_source as component_source
from .source import joined_with as joined_with
from .source import style_sheet as style_sheet
