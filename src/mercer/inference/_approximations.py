"""The sparse approximations, by what they assume of f given the inducing variables (UV Table 1).

With u = f(Z) the inducing variables and Q = K_fu K_uu^-1 K_uf, the training conditional of f given
u has the covariance K - Q (UV 9a). What an approximation keeps of that is its training
conditional; what it keeps of K** - Q** at new points is its test conditional.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["APPROXIMATIONS", "Approximation", "approximation", "table"]


@dataclass(frozen=True)
class Approximation:
    """One row of the table.

    name : str
    training : {"deterministic", "independent", "blocks"}
        What is kept of K - Q: nothing, its diagonal, or diagonal blocks.
    test : {"deterministic", "exact", "independent", "blocks"}
        The same at new points; "exact" keeps all of it, "blocks" joins them to training blocks.
    power : float
        The share of the diagonal that is kept; the others belong to no prior of f.
    penalised : bool
        Whether the evidence pays for what is not kept, which makes it a bound at power 0.
    """

    name: str
    training: str
    test: str
    power: float = 0.0
    penalised: bool = False

    @property
    def is_process(self) -> bool:
        """Whether the approximation is exact inference under some covariance function."""
        return self.training == self.test and self.training != "blocks"


#: By the names that estimators give them. The subset of data is exact inference on fewer rows, and
#: the Nyström approximation (UV 32) is no model: neither has conditionals.
APPROXIMATIONS = {
    "sor": Approximation("sor", "deterministic", "deterministic"),
    "dtc": Approximation("dtc", "deterministic", "exact"),
    "fitc": Approximation("fitc", "independent", "exact", power=1.0),
    "pitc": Approximation("pitc", "blocks", "exact", power=1.0),
    "pic": Approximation("pic", "blocks", "blocks", power=1.0),
    "vfe": Approximation("vfe", "deterministic", "exact", penalised=True),
    "pep": Approximation("pep", "independent", "exact", power=0.5, penalised=True),
}


def approximation(name: str, power: float = 0.5, joint: str = "exact") -> Approximation:
    """Return an approximation by name.

    Parameters
    ----------
    name : str
        A key of `APPROXIMATIONS`.
    power : float, default 0.5
        Of "pep": from 0, which is "vfe", to 1, which is "fitc".
    joint : {"exact", "independent"}, default "exact"
        With "independent" new points are independent given u, as the training rows of "fitc" are:
        that is FIC, a Gaussian process whose covariance is given in UV Remark 7.

    Examples
    --------
    >>> from mercer.inference import approximation
    >>> approximation("pep", power=0.0).training
    'deterministic'
    """
    if name not in APPROXIMATIONS:
        names = ", ".join(map(repr, APPROXIMATIONS))
        raise ValueError(f"approximation must be one of {names}, got {name!r}")
    found = APPROXIMATIONS[name]
    if name == "pep":
        if not 0.0 <= power <= 1.0:
            raise ValueError(f"power must be from 0 (VFE) to 1 (FITC), got {power!r}")
        kept = "independent" if power > 0 else "deterministic"
        found = replace(found, training=kept, power=float(power))
    if joint not in ("exact", "independent"):
        raise ValueError(f"joint must be 'exact' or 'independent', got {joint!r}")
    if joint == "independent":
        if found.test != "exact":
            raise ValueError(
                f"joint='independent' says how new points of an exact test conditional go "
                f"together; that of {name!r} is {found.test}"
            )
        found = replace(found, test="independent")
    return found


_KEPT = {"deterministic": "0", "independent": "diag[{0}]", "blocks": "blockdiag[{0}]"}


def table() -> str:
    """Return UV Table 1, and what has come since, made from `APPROXIMATIONS`.

    Examples
    --------
    >>> from mercer.inference import table
    >>> print(table().splitlines()[0])
    method  f* given u     f given u      Lambda - noise     GP?
    """
    rows = [("method", "f* given u", "f given u", "Lambda - noise", "GP?")]
    fic = replace(APPROXIMATIONS["fitc"], name="fic", test="independent")
    for each in (*APPROXIMATIONS.values(), fic):
        kept = _KEPT[each.training].format("K - Q")
        share = "" if each.power in (0.0, 1.0) else "power "
        rows.append((each.name, each.test, each.training, share + kept, "x"[: each.is_process]))
    widths = [max(len(row[j]) for row in rows) + 2 for j in range(4)]
    return "\n".join(
        "".join(cell.ljust(w) for cell, w in zip(row, (*widths, 0), strict=True)).rstrip()
        for row in rows
    )
