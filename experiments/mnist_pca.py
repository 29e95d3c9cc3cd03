#!/usr/bin/env python3
"""The main job: MNIST with private PCA and DP-SGD (Abadi et al. 2016, Section 5.2, Figure 3).

python experiments/mnist_pca.py                     # epsilon 2 at delta 1e-5, a minute or two
python experiments/mnist_pca.py --noise small       # epsilon 8
python experiments/mnist_pca.py --baseline          # the same network without privacy
"""

import sys

import common

common.start(__name__)

from common.config import PcaFlags as Config
from common.job import command_line, experiment, load_digits, main_job

NAME = "mnist_pca"
run = experiment(NAME, load_digits, main_job)
main = command_line(NAME, Config, run, __doc__)

if __name__ == "__main__":
    sys.exit(main())
