"""The ranks of an MPI launcher, between which each lot is divided."""
