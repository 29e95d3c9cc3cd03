"""Everything that touches the private data: sampling, clipping, noise and private projections; and
the plan that joins them.
"""

from ..util.lazy import names_of

# module: its names, which __init__.pyi repeats for type checkers
__getattr__, __dir__, __all__ = names_of(
    __name__,
    {
        "clip": "ClipGroup clip_weights flat_group per_layer_groups",
        "noise": "add_gaussian",
        "pca": "PrivatePCA random_projection",
        "plan": "Plan",
        "samplers": "PoissonSampler ShuffleSampler",
        "sanitizer": "Sanitizer",
        "schedule": "LinearDecay Stages",
        ".fitting.column_look": "ColumnLook",
        ".fitting.mean": "mean_sanitizer noisy_mean shrunk",
    },
)
