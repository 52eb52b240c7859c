"""What decides about the points of an on-line process: as it is given, and for the recursion."""

from __future__ import annotations

from mercer.linalg.recursion import CRITERIA, NOVELTIES, Rules

__all__ = ["LEAST", "require_defaults", "rules_of"]

# The least variance of a point given the others, in units of k(x, x): with the second Q is right to
# many digits, and with less than the first to none. Q has entries as large as its inverse.
LEAST, _FLOOR = 1e-8, 1e-6


def rules_of(max_basis: int, tol: float, novelty: str, criterion: str, forget: float) -> Rules:
    """Return the rules; the parameters are those of `OnlineProcess`."""
    choices = (
        _position("criterion", criterion, CRITERIA),
        _position("novelty", novelty, NOVELTIES),
    )
    floor = max(min(float(tol), _FLOOR), LEAST) if novelty == "geometry" else _FLOOR
    return Rules(int(max_basis), *choices, float(tol), floor, 1.0 - float(forget))


def require_defaults(max_basis: int | None, rules: Rules) -> None:
    """Raise ValueError for what decides about points, or forgets, where there are weights alone."""
    usual = rules_of(rules.max_basis, 1e-6, "geometry", "kl", 0.0)
    given = [name for name, own in rules._asdict().items() if own != getattr(usual, name)]
    given = ["forget" if name == "keep" else name for name in given if name != "floor"]
    given = [*given, *([] if max_basis is None else ["max_basis"])]
    if given:
        raise ValueError(
            "of a degenerate posterior (w = 0) the weights alone are updated: points neither come "
            f"nor go, and nothing of them is forgotten, so that {', '.join(given)} would do "
            "nothing. Leave that out, or go on under the full kernel with lift=True"
        )


def _position(name: str, given: str, choices: tuple[str, ...]) -> int:
    if given not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {given!r}")
    return choices.index(given)
