"""What options may be, in words and by checks, and the examples of each command.

Only typer is imported here; what a command needs is imported when it runs.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mercer.cli.kernels import parse_kernel, parse_period
from mercer.cli.methods import METHODS

__all__ = [
    "EXAMPLES",
    "PRIORS",
    "TABLES",
    "Debug",
    "Force",
    "checked_coverage",
    "checked_format",
    "checked_kernel",
    "checked_method",
    "checked_on_error",
    "checked_own",
    "checked_periods",
    "checked_prior",
    "checked_scale",
    "epilog",
    "likelihood_help",
]

# One or more for each command; shown by its --help, and parsed by the tests.
EXAMPLES = {
    "": ["mercer fit data.csv --target y -o model.mercer", "mercer predict model.mercer new.csv"],
    "fit": [
        "mercer fit data.csv --target y -o model.mercer",
        "mercer fit data.parquet -t price --drop id --kernel matern52+linear -o m.mercer",
        "mercer fit data.csv -t sold --kernel rbf+periodic --period date=7 -o m.mercer",
        "mercer fit data.csv -t y --method laplacian --likelihood huber -o m.mercer",
        "mercer fit data.csv -t y --method relevance --robust -o m.mercer",
    ],
    "predict": [
        "mercer predict model.mercer new.csv -o predictions.csv",
        "mercer predict model.mercer new.parquet --coverage 0.9 --keep -o out.parquet",
        "mercer predict model.mercer - < new.csv > predictions.csv",
    ],
    "info": ["mercer info model.mercer"],
    "stream": [
        "mercer fit first.csv -t y --method online -o model.mercer",
        "mercer stream --model model.mercer < rows.csv > predictions.csv",
        "mercer stream --model model.mercer --resume < rows.csv >> predictions.csv",
        "mercer stream --model gp.mercer --continue-as online.mercer < rows.jsonl",
    ],
    "demo": ["mercer demo", "mercer demo --folder mercer-demo"],
    "reproduce": [
        "mercer reproduce --list",
        "mercer reproduce abalone-error --data data -o reproduced",
        "mercer reproduce --quick",
    ],
}


def epilog(command: str) -> str:
    """Return the examples of a command, as its help shows them."""
    examples = EXAMPLES[command]
    head = "Examples:" if len(examples) > 1 else "Example:"
    return "\n".join(["\b", head, *(f"  {example}" for example in examples)])


#: The priors on coefficients of an expansion.
PRIORS = ("laplacian", "weight_decay", "feature_selection")
TABLES = ".csv, .tsv, .txt, .parquet or .pq"
Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def checked_method(name: str) -> str:
    """Return the name of a method, or say what is wrong with it."""
    return _one_of(name, tuple(METHODS))


def checked_kernel(text: str) -> str:
    """Return the text of a kernel, or say what is wrong with it."""
    try:
        parse_kernel(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return text


def checked_periods(texts: list[str]) -> list[str]:
    """Return the texts of periods, or say what is wrong with it."""
    try:
        for text in texts:
            parse_period(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return texts


def checked_prior(name: str | None) -> str | None:
    """Return the name of a prior on coefficients, or say what is wrong with it."""
    return None if name is None else _one_of(name, PRIORS)


def checked_scale(value: float | None) -> float | None:
    """Return a scale, a positive number, or say what is wrong with it."""
    if value is not None and not 1e-70 <= value <= 1e70:
        raise typer.BadParameter(f"a positive number from 1e-70 to 1e70 is wanted, got {value:g}")
    return value


def likelihood_help() -> str:
    """Return what each method that has a choice takes for its noise, or for labels."""
    choices = [
        f"{', '.join(found.likelihoods)} with --method {name}"
        for name, found in METHODS.items()
        if found.likelihoods
    ]
    return f"{'; '.join(choices)}."


def checked_own(method: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a method's own that were given, or say which of them it has not."""
    own = {name: value for name, value in given.items() if value is not None}
    for name in own:
        if name not in METHODS[method].own:
            others = ", ".join(other for other, found in METHODS.items() if name in found.own)
            raise typer.BadParameter(
                f"--{name.replace('_', '-')} is an option of --method {others}, got {method}"
            )
    if "likelihood" in own and own["likelihood"] not in METHODS[method].likelihoods:
        choices = ", ".join(METHODS[method].likelihoods)
        raise typer.BadParameter(
            f"--likelihood {own['likelihood']!r} is none of those of --method {method}: {choices}"
        )
    return own


def checked_coverage(value: float) -> float:
    """Return a coverage between 0 and 1, or say what is wrong with it."""
    if not 0.0 < value < 1.0:
        hint = f"; for {value:g}% write {value / 100:g}" if 1.0 < value < 100.0 else ""
        raise typer.BadParameter(f"a number between 0 and 1 is wanted, got {value:g}{hint}")
    return value


def checked_format(name: str) -> str:
    """Return the format of a stream, or say what is wrong with it."""
    return _one_of(name, ("auto", "json", "csv"))


def checked_on_error(name: str) -> str:
    """Return what is done at a row that cannot be read, or say what is wrong with it."""
    return _one_of(name, ("stop", "skip"))


def _one_of(name: str, choices: tuple[str, ...]) -> str:
    if name not in choices:
        raise typer.BadParameter(f"{name!r} is not one of: {', '.join(choices)}")
    return name
