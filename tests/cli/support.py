"""Tables and files for the tests of the command line."""

from __future__ import annotations

import csv

import numpy as np

NAMES = ["x 1", 'the "big" one, in mm', "colour", "größe", "fresh", "yield"]


def make_rows(n, seed=0):
    """Rows of numbers, text with delimiters and quotes, letters of all kinds, and truth values."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=n).round(4), rng.uniform(1000, 2000, n).round(2)
    colour = rng.choice(['red, "dark"', "blue; light", "grün"], n)
    size = rng.choice(["klein", "groß"], n)
    fresh = rng.choice(["True", "False"], n)
    y = np.sin(2 * a) + b / 1000 + (colour == "grün") + 0.3 * (fresh == "True")
    y = (y + 0.05 * rng.normal(size=n)).round(6)
    return [list(row) for row in zip(a, b, colour, size, fresh, y, strict=True)]


def write_csv(path, header, rows, delimiter=",", encoding="utf-8"):
    with open(path, "w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(header)
        writer.writerows(rows)
    return str(path)


def read_rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
