"""Inference engines: arrays in; posterior, evidence and adjoints out."""
