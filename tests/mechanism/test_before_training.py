"""Releases before the first step in exact arithmetic: charged with their noise's distance, the same bits in any order."""
import math

import numpy as np
import pytest

import minidp
from minidp.errors import DtypeError, ParameterError
from minidp.host.blas import thread_functions
from minidp.host.discrete import total_variation
from minidp.mechanism import PrivatePCA, PrivateScaling, mean_sanitizer, noisy_mean
from minidp.privacy import Composed, Gaussian, Ledger, TotalVariation
from minidp.privacy.events import NeighbouringRelation as Relation
from minidp.run.verify import verify
from minidp.streams import Streams
from tests.support.running import make_run
from tests.support.training import make_trainer

def noise(name="some"):
    return Streams(1).noise(name)


@pytest.mark.parametrize("relation", Relation)
def test_each_release_is_charged_with_the_distance_of_each_number(relation):
    replaced = relation is Relation.REPLACE_ONE
    event, distance = PrivatePCA(3, 7.0, "exact").charge(relation, 20).events
    assert event == Gaussian(7 / math.sqrt(1 + replaced)) and distance.count == 210
    assert distance.tau >= max(total_variation(7 * 2.0**32), total_variation(7 * 2.0**31.5))
    for charge, numbers in zip(PrivateScaling(3.0, "exact").charges(relation, 5), (5 * 61, 10), strict=True):
        assert charge == Composed((Gaussian(3.0), TotalVariation(charge.events[1].tau, numbers)))
    mean = mean_sanitizer(7.0, 2.0, "exact", 20)
    event, tau = mean.event(relation), total_variation(7 * 2.0**32)
    assert mean.charge(event) == Composed((event, TotalVariation(tau, 20)))
    assert PrivatePCA(3, 7.0).charge(relation, 20) == PrivatePCA(3, 7.0).event(relation)
    assert PrivateScaling(3.0).charges(relation, 5) == [Gaussian(3.0)] * 2
    assert PrivatePCA(3, 0.0, "exact").charge(relation, 20) == Gaussian(0.0)
    with pytest.raises(ParameterError, match=r"noise_std=1025.0 in \[0, 1024.0\]"):
        PrivatePCA(3, 1025.0, "exact").charge(relation, 20)


@pytest.mark.skipif(thread_functions() is None, reason="BLAS cannot be told how many threads to use")
def test_releases_are_the_same_bits_in_any_order_and_on_any_number_of_threads(rng):
    x, found = rng.standard_normal((9000, 30)).astype("float32"), set()
    get, set_threads = thread_functions()
    before = get()
    try:
        for threads in (1, 2, 4):
            set_threads(threads)
            rows, scaling = rng.permutation(x), PrivateScaling(3.0, "exact")
            limits = scaling.release_limits(rows, Relation.ADD_REMOVE, noise("limits"))
            moments = scaling.release_moments(rows, limits, Relation.ADD_REMOVE, noise("moments"))
            model = PrivatePCA(5, 7.0, "exact")
            mean = noisy_mean(rows, mean_sanitizer(7.0, 1.0, "exact", 30), 9000, noise("mean"))
            released = model.release(model.raw_second_moments(rows), noise("pca")), limits, moments, mean
            found.add(b"".join(each.tobytes() for each in released))
    finally:
        set_threads(before)
    assert len(found) == 1


@pytest.mark.parametrize("scale, charged, counts", [
    ("private", ["limits", "moments"], [183, 6]), ("auto", ["mean"], [3])])
def test_a_fit_in_exact_arithmetic_releases_nothing_in_ordinary(scale, charged, counts, rng, tmp_path):
    x = rng.normal(size=(400, 3))
    fitted = minidp.fit(x, x[:, 0] > 0, epsilon=1.0, scale=scale, arithmetic="exact", quiet=True,
                        folder=tmp_path / "run")
    setup = fitted.result["settings"]["setup"]
    assert [release["name"] for release in setup] == charged and not verify(tmp_path / "run").failed
    events = [event for event, _ in Ledger.load(tmp_path / "run" / "ledger.json").items()]
    assert [event.events[1].count for event in events] == [*counts, 8]  # of two logits for each feature, and a bias
    assert "ordinary arithmetic" not in (tmp_path / "run" / "privacy.md").read_text()


def test_float16_is_refused_or_taken_for_what_it_is(rng, tmp_path):
    half, y = rng.standard_normal((40, 6)).astype("float16"), rng.integers(0, 2, 40)
    full = half.astype("float32")
    for train in (lambda x: make_trainer().run(x, y, Streams(1)), lambda x: make_run(tmp_path).train(x, y)):
        with pytest.raises(DtypeError, match=r"float16; convert it with .astype\(numpy.float32\)"):
            train(half)
    model, scaling, limits = PrivatePCA(2, 4.0), PrivateScaling(3.0), np.ones(6)
    for release in (model.raw_second_moments, lambda x: scaling.release_limits(x, Relation.ADD_REMOVE, noise()),
                    lambda x: scaling.release_moments(x, limits, Relation.ADD_REMOVE, noise()),
                    lambda x: noisy_mean(x, mean_sanitizer(7.0), 40, noise()),
                    lambda x: noisy_mean(x, mean_sanitizer(7.0, 1.0, "exact", 6), 40, noise()),
                    lambda x: minidp.fit(x, y, epsilon=8.0, seed=1, quiet=True).predict_proba(x),
                    lambda x: minidp.PrivateClassifier(epsilon=8.0, seed=1, quiet=True).fit(x, y).predict_proba(x)):
        assert release(half).tobytes() == release(full).tobytes()
