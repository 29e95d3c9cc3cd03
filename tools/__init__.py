"""Programs for developers, run from the checkout: python -m tools.benchmark, tools.gpu.report, tools.tables, ..."""
