"""Directive ``command-help``: what each command of the command line says of itself."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class CommandHelp(SphinxDirective):
    """Put a section for each command here, with the text of its ``--help``."""

    def run(self) -> list[nodes.Node]:
        """Return the sections; none where the command line is not installed."""
        try:
            import typer

            from mercer.cli.app import app
        except ImportError:
            return []
        group: Any = typer.main.get_command(app)
        sections: list[nodes.Node] = []
        for name, command in group.commands.items():
            full = f"mercer {name}"
            context = command.make_context(full, [], resilient_parsing=True)
            context.max_content_width = context.terminal_width = 90
            section = nodes.section(ids=[full.replace(" ", "-")], names=[full])
            section += nodes.title("", "", nodes.literal(text=full))
            text = command.get_help(context)
            section += nodes.literal_block(text, text, language="text")
            sections.append(section)
        return sections


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
