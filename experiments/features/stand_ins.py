"""Data that settings are tried on in place of an experiment's own, in that experiment's features.

A class for each experiment, made from the flags of settings.py, has

    name, about         of the data; further entries of the search's JSON
    told_apart, tiny    names of the fields that identify its data sets; a set that takes seconds
    load                function of a set that returns images and labels to train and to test on
    features, first     as in `fixed_features` and in `Problem` of common/linear.py
"""

from common.linear import NORM

import numpy as np
from scipy.ndimage import maximum_filter

from minidp.data import centre_crop, load_strokes, standardise_images
from minidp.errors import ParameterError

from . import colours, digits, learned
from .frozen import Taps, load_pretrained
from .pretraining import CLASSES, SIDE, some_classes
from .views import BATCH

# Classes of Tiny ImageNet. They have the order of WordNet's numbers, in which animals, food and
# places stand beside their like, but things (59 to 176) are in the alphabet's order. So the odd
# classes were grouped by hand, by their looks.
GROUPS = {
    "frogs, a snake, spiders, insects": "1 3 5 7 9 15 37 39 41 43",
    "dogs, cats, other mammals": "25 27 29 31 33 35 47 49 51 53",
    "animals of the sea, birds, large animals": "11 13 17 19 21 23 45 55 57 199",
    "vehicles": "81 103 107 111 115 121 127 133 145 153",
    "towers, bridges, landscapes": "71 91 95 101 129 157 165 173 195 197",
    "food": "93 177 179 181 183 185 187 189 191 193",
    "people, clothes": "63 77 85 105 119 123 143 149 169 171",
    "rooms, furniture, lights": "61 65 69 83 89 97 113 151 163 167",
    "instruments": "59 75 87 109 117 139 141 147 155 159",
    "bottles, sticks and other things": "67 73 79 99 125 131 135 137 161 175",
}
MEMBERS = np.array([group.split() for group in GROUPS.values()], int)


class StandIn:
    """What most of them share."""

    about = {}

    def __init__(self, args):
        """args: the flags of settings.py."""

    def first(self, form):
        """Weights and biases that training begins with."""


class Digits(StandIn):
    """Synthetic digits, in the features of mnist_best.py.

    At a stray of 1.1, nearest neighbours err on them about as often as on MNIST.
    """

    name, told_apart, tiny = "strokes", ("training images", "tested", "stray"), (300, 100, 1.1)
    features = staticmethod(digits.features)

    def load(self, size, tested, stray):
        drawn = load_strokes((size, tested), progress=False, stray=stray)
        return drawn.x_train, drawn.y_train, drawn.x_test, drawn.y_test


class BroadDigits(Digits):
    """Synthetic digits, half of them with a broad pen, in the features of mnist_learned.py.

    Learned features fit the generator that they learned from too well. So the networks here never
    see one way of writing each digit, nor a broad pen.
    """

    def __init__(self, args):
        few = {"epochs": 1, "size": 1000} if args.smoke else {}
        self.networks = [learned.train(seed, **few, held_out=1) for seed in (1, 2, 3, 4)]

    def load(self, *where):
        x, y, tested, wanted = super().load(*where)
        for images in (x, tested):
            images[1::2] = maximum_filter(images[1::2], (1, 2, 2))
        return x, y, tested, wanted

    def learned(self, form):
        return learned.Learned(self.networks[: form["networks"]])

    def features(self, images, backend, form):
        return learned.features(images, backend, form, networks=self.learned(form))

    def first(self, form):
        return learned.first_weights(self.learned(form), form)


class Colours(StandIn):
    """Public images of other classes than CIFAR-10's, in the features of cifar_best.py.

    A set has ten classes, GROUPS; of each group the members from one to another alone.
    """

    name, told_apart = "public-odd", ("first of a group", "up to", "training images", "tested")
    tiny = 0, 10, 150, 100
    features = staticmethod(colours.features)

    def __init__(self, args):
        if args.public_data is None:
            raise ParameterError("--public-data DIR is needed")
        self.path = args.public_data

    def load(self, first, last, size, tested):
        label = np.zeros(CLASSES, int)
        members = MEMBERS[:, first:last]
        label[members] = np.arange(len(members))[:, None]
        odd = some_classes(self.path, self.name, members, label)
        return odd.x_train[:size], odd.y_train[:size], odd.x_test[:tested], odd.y_test[:tested]


class Pretrained(Colours):
    """The same images, in the features of `cifar_transfer.py head`.

    The network learned the even classes alone.
    """

    def __init__(self, args):
        super().__init__(args)
        if args.pretrained is None:
            raise ParameterError("--pretrained FILE is needed")
        self.layers, found = load_pretrained(args.pretrained, np.random.default_rng(0))
        if found["classes"] != CLASSES // 2:
            raise ParameterError(
                f"{args.pretrained}: learned {found['classes']} classes, expected the "
                f"{CLASSES // 2} even ones of `pretrain --even`: the others stand in for private "
                "data"
            )
        self.about = {"pretrained": found}

    def features(self, images, backend, form):
        take = Taps(self.layers, form["taps"], NORM)
        for start in range(0, len(images), BATCH):
            yield take(standardise_images(centre_crop(images[start : start + BATCH], SIDE)))
