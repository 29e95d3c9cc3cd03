"""Attack the main job in one run: canaries in the training images, guessed in or out from the final model.

    python experiments/mnist_audit.py --audit-canaries 1000 --noise small --out DIR

Further flags are those of mnist_pca.py. Canaries are training images with a wrong, random label; a fair coin leaves each
in the data or takes it out (the public size, and with it q, stays). The score is the final model's loss on the canary;
the bound is that of Steinke, Nasr, Jagielski 2023. The attacker sees the model only, so the bound is far below the
certified epsilon: it would show a gross error, not a small one. Exit status 1 if the bound lies above the certified
epsilon, 2 for user errors.
"""
import sys
from dataclasses import replace
from pathlib import Path

from common.config import parse
import mnist_pca
import numpy as np

from minidp import nn
from minidp.audit import empirical
from minidp.cli import Parser, user_errors
from minidp.errors import ParameterError
from minidp.files import write_json
from minidp.numbers import lower_text, upper_text
from minidp.ranks import current
from minidp.run import load_model

CONFIDENCE = 0.95


def with_canaries(dataset, canaries, rng):
    """(the data set with the included canaries, canary images, their labels, whether each is included)."""
    total = len(dataset.x_train)
    if not 2 <= canaries <= total // 2:
        raise ParameterError(f"expected audit_canaries={canaries} in [2, {total // 2}], half of the training images")
    chosen = rng.choice(total, canaries, replace=False)
    labels = dataset.y_train.copy()
    labels[chosen] = (labels[chosen] + rng.integers(1, dataset.classes, canaries)) % dataset.classes
    included = rng.random(canaries) < 0.5
    kept = np.delete(np.arange(total), chosen[~included])
    changed = replace(dataset, x_train=dataset.x_train[kept], y_train=labels[kept])
    return changed, dataset.x_train[chosen], labels[chosen], included


def losses(folder, images, labels):
    """The saved model's loss on each image."""
    network = load_model(folder / "model.npz").network
    return nn.SoftmaxCrossEntropy()(network.predict(mnist_pca.to_float(images)), labels)[0]


def main(argv=None):
    """The command line; returns the exit status."""
    parser = Parser(prog="mnist_audit.py", description=__doc__.splitlines()[0])
    parser.add_argument("--audit-canaries", type=int, required=True, help="canaries, about half of which are trained on")
    parser.add_argument("--json", metavar="FILE", help="write the figures")
    options, flags = parser.parse_known_args(argv)
    with user_errors():
        config = parse(mnist_pca.Config, flags, prog="mnist_audit.py")
        if config.out is None:
            raise ParameterError("expected --out DIR, a folder for the audited run")
        if config.sampler != "poisson":
            raise ParameterError(f"--audit-canaries takes examples out of the data, which sampler={config.sampler} has no "
                                 "relation for; use --sampler poisson")
        planted, load = [], mnist_pca.load_digits

        def load_planted(config, smoke_sizes):
            changed, *rest = with_canaries(load(config, smoke_sizes), options.audit_canaries, np.random.default_rng())
            planted.extend(rest)
            notice = f"{options.audit_canaries} canaries planted by mnist_audit.py: training images relabelled or left out"
            return replace(changed, sha256=None, notice="; ".join(filter(None, (changed.notice, notice))))

        mnist_pca.load_digits = load_planted
        try:
            result, stopped = mnist_pca.run(config)
        finally:
            mnist_pca.load_digits = load
        return current().of_first(lambda: _report(result, stopped, config, planted, options))  # planted on rank 0 alone


def _report(result, stopped, config, planted, options):
    if not planted or stopped == "interrupted":
        raise ParameterError("the run is finished or was interrupted; canaries are drawn anew: start a new one")
    images, labels, included = planted
    scores = -losses(Path(config.out), images, labels)
    bound = empirical.one_run_epsilon(scores, included, result["delta"], CONFIDENCE)
    fpr, tpr, area = empirical.roc(scores[included], scores[~included])
    uppers = [float(found["upper"]) for found in result["epsilon"].values()
              if found["kind"] == "bound" and found["upper"] is not None]
    certified = min(uppers)
    limit = f" (certified at most {upper_text(result['meaning']['true_positive_rates']['0.01'], 3)})" if result["meaning"] else ""
    print(f"{'ok  ' if bound <= certified else 'FAIL'} one run, {len(included)} canaries ({int(included.sum())} trained on): "
          f"epsilon at least {lower_text(bound, decimals=3)} with 95% confidence, certified at most "
          f"{upper_text(certified, decimals=3)}; area {area:.3f}, "
          f"TPR {empirical.tpr_at(fpr, tpr, 0.01):.3f} at FPR 0.01{limit}; test accuracy {result['test_accuracy']:.2%} with "
          "the canaries in the data")
    if options.json:
        write_json(options.json, {"canaries": len(included), "included": int(included.sum()), "epsilon_lower": bound,
                                  "certified": certified, "area": area, "test_accuracy": result["test_accuracy"],
                                  "meaning": result["meaning"]})
    return 0 if bound <= certified else 1


if __name__ == "__main__":
    sys.exit(main())
