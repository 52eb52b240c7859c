"""Tables for benchmarks and examples: read from files, or fetched on request."""

from mercer.datasets.tables import Table, load_table

__all__ = ["Table", "load_table"]
