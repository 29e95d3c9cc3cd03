"""A stand-in for CIFAR-10 made of public images: settings are chosen on it before any image of
CIFAR-10 is opened.
"""

import numpy as np

from minidp.data import Dataset, load_public
from minidp.errors import DataError

# Of the public set: Tiny ImageNet's, in the order of WordNet's numbers, in which animals, food and
# places stand beside their like, but things (59 to 176) in the alphabet's order; so the odd classes
# were grouped by hand, by their looks
CLASSES = 200
GROUPS = (
    (1, 3, 5, 7, 9, 15, 37, 39, 41, 43),  # frogs, a snake, spiders, insects
    (25, 27, 29, 31, 33, 35, 47, 49, 51, 53),  # dogs, cats, other mammals
    (11, 13, 17, 19, 21, 23, 45, 55, 57, 199),  # animals of the sea, birds, large animals
    (81, 103, 107, 111, 115, 121, 127, 133, 145, 153),  # vehicles
    (71, 91, 95, 101, 129, 157, 165, 173, 195, 197),  # towers, bridges, landscapes
    (93, 177, 179, 181, 183, 185, 187, 189, 191, 193),  # food
    (63, 77, 85, 105, 119, 123, 143, 149, 169, 171),  # people, clothes
    (61, 65, 69, 83, 89, 97, 113, 151, 163, 167),  # rooms, furniture, lights
    (59, 75, 87, 109, 117, 139, 141, 147, 155, 159),  # instruments
    (67, 73, 79, 99, 125, 131, 135, 137, 161, 175),
)  # bottles, sticks and other things


def stand_in(path, members=10):
    """(set to train privately on, public set): Datasets of the odd and of the even classes of the
    public set at `path`.

    The first has ten classes, GROUPS, and 50,000 + 5,000 colour images, as many to train on as
    CIFAR-10; or, of the first `members` of each group alone, a tenth as many for each. The second
    has the even classes, relabelled 0 to 99, and 50,000 again. No image is in both. Raises
    DataError for a set of other classes.
    """
    whole = load_public(path)
    if whole.classes != CLASSES:
        raise DataError(f"{path}: expected a public set of {CLASSES} classes, got {whole.classes}")
    label, few = np.arange(CLASSES) // 2, [group[:members] for group in GROUPS]
    for group, ones in enumerate(GROUPS):
        label[list(ones)] = group
    return _part(whole, 1, few, label, len(GROUPS)), _part(
        whole, 0, range(0, CLASSES, 2), label, CLASSES // 2
    )


def _part(whole, odd, kept, label, classes):
    train, test = (np.isin(y, kept) for y in (whole.y_train, whole.y_test))
    return Dataset(
        f"public-{('even', 'odd')[odd]}",
        whole.x_train[train],
        label[whole.y_train[train]],
        whole.x_test[test],
        label[whole.y_test[test]],
        classes=classes,
        nominal_size=int(train.sum()),
        notice=whole.notice,
    )
