"""Running the blocks of a page: Python, Python with prompts, and the lines of a shell."""

from __future__ import annotations

import doctest
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

BLOCK = re.compile(r"^```(python|pycon|sh)\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^mercer ", re.MULTILINE)


def has_code(text: str) -> bool:
    """Whether a page has anything that runs."""
    blocks = BLOCK.finditer(text)
    return any(block[1] != "sh" or COMMAND.search(block[2]) for block in blocks)


def run_blocks(text: str, label: str) -> int:
    """Run the blocks of a page; one may use the names of those before it, as a reader would.

    A block with prompts must also show what it shows. The page is a module, as a reader's file
    would be, so that its classes can be pickled. Of a shell's lines those that call `mercer` run;
    returned is how many.
    """
    page = ModuleType("page_of_the_docs")
    sys.modules[page.__name__] = page
    names = vars(page)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    commands = 0
    try:
        for block in BLOCK.finditer(text):
            line = text.count("\n", 0, block.start(2))
            if block[1] == "python":
                # so that an error names the page's own line
                exec(compile("\n" * line + block[2], label, "exec"), names)
            elif block[1] == "sh":
                commands += sum(run_command(command) for command in block[2].splitlines())
            else:
                parser = doctest.DocTestParser()
                example = parser.get_doctest(block[2], names, label, label, line)
                shown: list[str] = []
                runner.run(example, out=shown.append, clear_globs=False)
                assert not shown, "".join(shown)
                names.update(example.globs)
    finally:
        del sys.modules[page.__name__]
    return commands


def run_command(line: str) -> bool:
    """Run a line of a shell, if it calls `mercer`; return whether it does.

    It may read a file as its standard input; what it would write to one is looked at by nobody.
    """
    words = shlex.split(line, comments=True)
    if words[:1] != ["mercer"]:
        return False
    given = None
    while len(words) > 2 and words[-2] in ("<", ">", ">>"):
        *words, sign, name = words
        given = Path(name).read_bytes() if sign == "<" else given
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from mercer.cli.app import app

    done = CliRunner().invoke(app, words[1:], input=given)
    assert done.exit_code == 0, f"{line}\n{done.output}"
    return True


def write_tables(folder: Path) -> None:
    """Write what a reader is taken to have: data.csv with the target y, and new.csv without."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(40, 2)).round(4)
    colours = rng.choice(["red", "blue"], 40)
    y = (np.sin(5.0 * x[:, 0]) + (colours == "red") + 0.1 * rng.normal(size=40)).round(4)
    rows = [f"{a},{b},{c}" for (a, b), c in zip(x, colours, strict=True)]
    data = ["width,height,colour,y", *(f"{row},{t}" for row, t in zip(rows, y, strict=True))]
    (folder / "data.csv").write_text("\n".join(data) + "\n", encoding="utf-8")
    new = ["width,height,colour", *rows[:5]]
    (folder / "new.csv").write_text("\n".join(new) + "\n", encoding="utf-8")
