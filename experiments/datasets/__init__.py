"""Data sets of the experiments: MNIST and CIFAR-10, verified by hash; synthetic digits; distorted
views of images.
"""
