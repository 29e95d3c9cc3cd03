"""Lines of code and printed equations broken on purpose: a check of the audit must notice each."""
