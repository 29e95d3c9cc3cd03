from .arrays import Dataset as Dataset
from .augment import (
    centre_crop as centre_crop,
)
from .augment import (
    distort as distort,
)
from .augment import (
    draw_distortions as draw_distortions,
)
from .augment import (
    standardise_images as standardise_images,
)
from .cifar import load_cifar10 as load_cifar10
from .cifar import load_public as load_public
from .examples import Block as Block
from .examples import Examples as Examples
from .examples import LabelledExamples as LabelledExamples
from .fetch import cache_dir as cache_dir
from .mnist import load as load
from .mnist import load_mnist as load_mnist
from .persons import Persons as Persons
from .strokes import load_strokes as load_strokes
