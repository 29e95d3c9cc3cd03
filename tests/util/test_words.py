"""Every door answers the words of other libraries with ours."""

import re
from functools import partial

import numpy as np
import pytest

import minidp
from minidp import mechanism, nn, run, train
from minidp.__main__ import main
from minidp.backend import Backend
from minidp.errors import ParameterError
from minidp.mechanism import Plan, PoissonSampler, flat_group
from minidp.train import SGD
from minidp.util.words import WORDS

X, Y = np.zeros((4, 2)), np.zeros(4, int)


def fit(**named):
    return minidp.fit(X, Y, **{"epsilon": 1, **named})


OF_FIT = """
    sample_rate batch_size max_grad_norm l2_norm_clip lr epochs target_epsilon noise_multiplier
    optimizer random_state sample_weight class_weight
""".split()
DOORS = [
    *((name, fit, name) for name in OF_FIT),
    ("lr", minidp.Settings, "lr"),
    ("lr", minidp.PrivateClassifier, "lr"),
    ("class_weight", minidp.PrivateClassifier, "class_weight"),
    ("sample_weight", partial(minidp.PrivateClassifier().fit, X, Y), "sample_weight"),
    ("sample_rate", minidp.epsilon, "sample_rate"),
    ("batch_size", minidp.calibrate, "batch_size"),
    ("target_epsilon", minidp.calibrate, "target_epsilon"),
    ("kernel_size", lambda kernel_size: nn.Conv2D(1, 2, kernel_size=kernel_size), "kernel_size"),
]


@pytest.mark.parametrize("word, door, name", DOORS)
def test_a_parameter_of_other_libraries_is_answered(word, door, name):
    with pytest.raises(ParameterError, match=f"no parameter '{name}'; {re.escape(WORDS[word])}"):
        door(**{name: 3})


@pytest.mark.parametrize(
    "module, word",
    [
        (nn, "Linear"),
        (nn, "Conv2d"),
        (nn, "CrossEntropyLoss"),
        (nn, "GELU"),
        (train, "DPOptimizer"),
        (mechanism, "DPOptimizer"),
        (run, "DPDataLoader"),
        (minidp, "BatchMemoryManager"),
        (minidp.privacy, "ModuleValidator"),
    ],
)
def test_a_name_of_other_libraries_is_answered(module, word):
    with pytest.raises(AttributeError, match=f"no '?{word}'?; {re.escape(WORDS[word])}"):
        getattr(module, word)


def test_the_device_of_other_libraries_is_answered():
    for device in ("cuda", "cuda:0"):
        with pytest.raises(ParameterError, match=f"gpu:N, N .*; {WORDS['cuda']}"):
            Backend.pick(device)


@pytest.mark.parametrize(
    "flags, said",
    [
        ("epsilon --sample-rate 0.01 --delta 1e-5", "--sample-rate: it is --sampling-probability"),
        ("train x.npz --target-epsilon 1 --out o --lr 1", "--lr: it is --learning-rate; --help"),
        ("train x.npz --target-epsilon 1 --out o --seeed 1", "arguments: --seeed 1; --help lists"),
    ],
)
def test_a_flag_of_other_libraries_is_answered(flags, said, capsys):
    with pytest.raises(SystemExit):
        main(flags.split())
    assert said in capsys.readouterr().err


def test_what_is_nearly_right_and_what_is_not_known_at_all():
    with pytest.raises(ParameterError, match="epsilon has no parameter 'detla'; did you mean delt"):
        minidp.epsilon(detla=1e-5)
    with pytest.raises(ParameterError, match="ReLU has no parameter 'zzz'; there are name"):
        nn.ReLU(zzz=1)
    with pytest.raises(AttributeError, match=r"minidp.nn has no Dence; did you mean Dense\?"):
        nn.Dence  # noqa: B018


def test_a_constructor_that_takes_any_keyword_is_left_alone():
    class Mine(nn.ReLU):
        def __init__(self, **more):
            super().__init__()
            self.more = more

    assert Mine(lr=3).more == {"lr": 3}


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: SGD(lr=0.1), "SGD has no parameter 'lr'; it is learning_rate="),
        (lambda: SGD(0.1, momentum=0.9), "minidp.train has Momentum"),
        (lambda: PoissonSampler(sample_rate=0.1), "it is sampling_probability="),
        (lambda: Plan(expected_batch_size=30), "it is expected_lot_size="),
        (lambda: flat_group([("a", "W")], max_grad_norm=1.0), "it is clip_norm="),
        (lambda: nn.BatchNorm2d, "there is nn.GroupNorm"),
    ],
)
def test_the_parts_of_a_step_answer_words_of_other_libraries(call, words):
    with pytest.raises((ParameterError, AttributeError), match=words):
        call()
