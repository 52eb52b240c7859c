"""The commands and their options.

Only typer is imported here; what a command needs is imported when it runs.
"""

from __future__ import annotations

from typing import Annotated

import typer

from mercer.cli.guard import guarded
from mercer.cli.kernels import NAMES, parse_kernel, parse_period
from mercer.cli.methods import METHODS
from mercer.cli.options import (
    PRIORS,
    TABLES,
    Debug,
    Force,
    checked_coverage,
    checked_format,
    checked_kernel,
    checked_method,
    checked_on_error,
    checked_own,
    checked_periods,
    checked_prior,
    checked_scale,
    epilog,
    likelihood_help,
)

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        import mercer

        typer.echo(f"mercer {mercer.__version__}")
        raise typer.Exit()


@app.callback(epilog=epilog(""))
def _mercer(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version."),
    ] = False,
) -> None:
    """Bayesian kernel machines on tables: predictions with honest error bars."""


@app.command(epilog=epilog("fit"))
def fit(
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help=f"The table: {TABLES}; - is CSV input."),
    ],
    target: Annotated[
        list[str],
        typer.Option("--target", "-t", metavar="COLUMN", help="The column to predict."),
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="The model file to write.")],
    method: Annotated[
        str,
        typer.Option(
            callback=checked_method,
            help="; ".join(f"{name}: {found.summary}" for name, found in METHODS.items()) + ".",
        ),
    ] = "gp",
    kernel: Annotated[
        str,
        typer.Option(
            callback=checked_kernel,
            help=f"One of {', '.join(NAMES)}, or a sum such as matern52+linear.",
        ),
    ] = "rbf",
    period: Annotated[
        list[str] | None,
        typer.Option(
            callback=lambda texts: checked_periods(texts or []),
            metavar="COLUMN=LENGTH",
            help="What the periodic kernel repeats with: of dates in days. Repeatable.",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column to leave out. Repeatable."),
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column of codes, not of numbers. Repeatable."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Weights of the rows: 2 counts a row twice. If they mean precision, let them "
            "average 1.",
        ),
    ] = None,
    restarts: Annotated[
        int, typer.Option(min=0, help="Random starts of the search beside the first.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="For the random starts.")] = 0,
    max_basis: Annotated[
        int | None,
        typer.Option(min=1, help="Of on-line methods: how many basis vectors there may be."),
    ] = None,
    forget: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=0.999999,
            help="Of on-line methods: what is forgotten with each row, where the function drifts.",
        ),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            callback=checked_prior,
            help=f"Of Laplacian processes: the coefficients', one of {', '.join(PRIORS)}.",
        ),
    ] = None,
    prior_scale: Annotated[
        float | None,
        typer.Option(
            callback=checked_scale,
            help="Of Laplacian processes: the unit of the coefficients; chosen without it.",
        ),
    ] = None,
    likelihood: Annotated[str | None, typer.Option(help=likelihood_help())] = None,
    robust: Annotated[
        bool,
        typer.Option(
            "--robust",
            help="Of --method relevance: noise of heavy tails, so that outliers count little.",
        ),
    ] = False,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Fit a model to a table and save it.

    All columns but the target are inputs. Text and true/false columns are encoded, ISO dates become
    days; missing values are refused, and columns that never vary left out. Ctrl-C ends the search
    and keeps the best model so far.
    """
    with guarded(debug):
        from mercer.cli.commands import run_fit
        from mercer.cli.fitting import FitOptions

        periods = dict(parse_period(text) for text in period or [])
        if ("periodic" in parse_kernel(kernel)) != bool(periods):
            raise typer.BadParameter(
                "--kernel periodic and --period COLUMN=LENGTH are wanted together"
            )
        if len(target) > 1:
            raise typer.BadParameter(
                f"one target a model is wanted, got {', '.join(target)}; fit a model for each"
            )
        given = {"max_basis": max_basis, "forget": forget, "prior": prior}
        given |= {"prior_scale": prior_scale, "likelihood": likelihood, "robust": robust or None}
        options = FitOptions(
            target=target[0],
            method=method,
            kernel=kernel,
            periods=periods,
            drop=tuple(drop or ()),
            categorical=tuple(categorical or ()),
            weights=weights,
            restarts=restarts,
            seed=seed,
            own=checked_own(method, given),
        )
        run_fit(data, output, options, force)


@app.command(epilog=epilog("predict"))
def predict(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A model file that `mercer fit` wrote.")
    ],
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help=f"The rows: {TABLES}; - is CSV input."),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", help=f"{TABLES}; - is CSV output.")
    ] = "-",
    coverage: Annotated[
        float, typer.Option(callback=checked_coverage, help="What the interval is to hold.")
    ] = 0.95,
    keep: Annotated[bool, typer.Option("--keep", help="Write the input's columns too.")] = False,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Predict the rows of a table.

    Writes a row for each row of the table, in its order: the predicted mean of TARGET as
    TARGET_mean, the standard deviation of a new observation as TARGET_std, and the ends of its
    interval as TARGET_lower and TARGET_upper; of a model of classes the likeliest label as
    TARGET_label, and a probability for each class as TARGET_p_CLASS. Columns are matched by name.
    """
    with guarded(debug):
        from mercer.cli.commands import run_predict

        run_predict(model, data, output, coverage, keep, force)


@app.command(epilog=epilog("stream"))
def stream(
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            help="A model file that `mercer fit --method online` wrote; kept up to date.",
        ),
    ],
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Pass over the lines of this input that the model knows."),
    ] = False,
    new: Annotated[
        bool,
        typer.Option("--new", help="Learn all rows, also if the last input was broken off."),
    ] = False,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            callback=checked_format,
            help="json (an object a line), csv (with a header), or auto: by the first line.",
        ),
    ] = "auto",
    coverage: Annotated[
        float, typer.Option(callback=checked_coverage, help="What the interval is to hold.")
    ] = 0.95,
    on_error: Annotated[
        str,
        typer.Option(
            "--on-error",
            callback=checked_on_error,
            help="At a row that cannot be read: stop, or skip it. Either way it is told of.",
        ),
    ] = "stop",
    every: Annotated[
        int, typer.Option(min=1, metavar="ROWS", help="Save the model after so many lines.")
    ] = 10_000,
    seconds: Annotated[
        float, typer.Option(min=0.0, help="Save it after so many seconds, if sooner.")
    ] = 30.0,
    continue_as: Annotated[
        str | None,
        typer.Option(
            "--continue-as",
            metavar="FILE",
            help="Make an on-line model of one of another kind, and keep it in this file.",
        ),
    ] = None,
    max_basis: Annotated[
        int | None,
        typer.Option(min=1, help="How many basis vectors that one may have. By default 100."),
    ] = None,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Predict each row of standard input, then learn it.

    Writes the prediction of each row before the model has learned it, as it comes: the number of
    its line, then TARGET_mean, TARGET_std, TARGET_lower and TARGET_upper, or TARGET_label and a
    probability for each class; as CSV or JSON lines, like the input. Rows without a target are
    predicted only. The model file is saved now and then and at the end, in one step, together with
    how many lines it knows: whatever ends the stream, --resume with the same input goes on from
    there, and ends as if nothing had happened. Ctrl-C ends the stream and saves the model.
    """
    with guarded(debug):
        if resume and new:
            raise typer.BadParameter("--resume and --new exclude each other")
        if continue_as is None and (max_basis is not None or force):
            raise typer.BadParameter("--max-basis and --force are for --continue-as FILE")
        if continue_as is not None and resume:
            raise typer.BadParameter(
                "--resume is for the model that is kept: --model with the name that was given to "
                "--continue-as"
            )
        from mercer.cli.stream import StreamOptions, run_stream

        options = StreamOptions(coverage, form, every, seconds, on_error == "skip", resume, new)
        run_stream(model, options, continue_as, max_basis, force)


@app.command(epilog=epilog("info"))
def info(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file.")],
    debug: Debug = False,
) -> None:
    """Tell what a model file holds and how well the model does."""
    with guarded(debug):
        from mercer.cli.commands import run_info

        run_info(model)


@app.command(epilog=epilog("demo"))
def demo(
    folder: Annotated[
        str | None, typer.Option(help="Where to keep the files; by default they are not kept.")
    ] = None,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Fit a model to made-up data and predict new rows."""
    with guarded(debug):
        from mercer.cli.demo import run_demo

        run_demo(folder, force)


@app.command(epilog=epilog("reproduce"))
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Which experiments; all if none is named."),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="The folder for tables and figures.")
    ] = "reproduced",
    data: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER", help="Where the data are; by default the folder MERCER_DATA names."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few rows, to see that it runs; the numbers are void.")
    ] = False,
    list_only: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Repeat experiments of the papers, ours beside the published.

    Each writes a page, its tables as CSV and its figures into a folder of its own. Those whose data
    are not at hand are left out, unless they are named.
    """
    with guarded(debug):
        from mercer.cli.reproduce import list_experiments, run_reproduce

        if list_only:
            list_experiments()
        else:
            run_reproduce(names or (), output, data, quick, force)
