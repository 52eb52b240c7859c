"""``python -m mercer.cli`` is the command ``mercer``."""

from mercer.cli.main import main

main()
