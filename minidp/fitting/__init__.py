"""From arrays to a private model in one call: `minidp.fit`, its rule, its scikit-learn classes."""
