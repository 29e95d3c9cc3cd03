"""`minidp.fit`, from arrays to a private model in one call: its rule, its scikit-learn classes."""
