"""Inference engines: arrays in; posterior, evidence and adjoints out."""

from mercer.inference._loo import LeftOut, leave_one_out, left_out, log_density, loo

__all__ = ["LeftOut", "leave_one_out", "left_out", "log_density", "loo"]
