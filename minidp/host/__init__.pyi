from ..fast.process import describe as describe
from ..fast.process import tune as tune
