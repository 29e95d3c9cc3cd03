from ..fitting.pieces import Pieces as Pieces
from ..layers.average_pool import AvgPool2D as AvgPool2D
from ..layers.dropout import Dropout as Dropout
from ..layers.embedding import Embedding as Embedding
from ..layers.norm import GroupNorm as GroupNorm
from ..layers.norm import LayerNorm as LayerNorm
from ..layers.norm import UnitNorm as UnitNorm
from ..layers.recurrent import LSTM as LSTM
from ..layers.sequence_loss import SequenceCrossEntropy as SequenceCrossEntropy
from ..layers.standardise import Standardise as Standardise
from . import init as init
from .activation import Clamp as Clamp
from .activation import ReLU as ReLU
from .activation import Sigmoid as Sigmoid
from .activation import Softmax as Softmax
from .activation import Tanh as Tanh
from .conv import Conv2D as Conv2D
from .dense import Dense as Dense
from .layer import Layer as Layer
from .loss import SoftmaxCrossEntropy as SoftmaxCrossEntropy
from .loss import SquaredError as SquaredError
from .network import Sequential as Sequential
from .pool import MaxPool2D as MaxPool2D
from .reshape import Flatten as Flatten
from .reshape import Project as Project

__all__: list[str]
