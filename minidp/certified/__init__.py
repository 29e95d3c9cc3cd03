"""The loss-distribution accountant (`pld`), Gaussian differential privacy, and composition of
pairs.
"""
