from ..fitting.column_look import ColumnLook as ColumnLook
from ..fitting.mean import mean_sanitizer as mean_sanitizer
from ..fitting.mean import noisy_mean as noisy_mean
from ..fitting.mean import shrunk as shrunk
from .clip import ClipGroup as ClipGroup
from .clip import clip_weights as clip_weights
from .clip import flat_group as flat_group
from .clip import per_layer_groups as per_layer_groups
from .noise import add_gaussian as add_gaussian
from .pca import PrivatePCA as PrivatePCA
from .pca import random_projection as random_projection
from .plan import Plan as Plan
from .samplers import *
from .sanitizer import Sanitizer as Sanitizer
from .schedule import LinearDecay as LinearDecay
from .schedule import Stages as Stages
