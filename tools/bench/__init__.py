"""The parts of python -m tools.benchmark: workloads, contenders in processes of their own, tables
and a picture.
"""
