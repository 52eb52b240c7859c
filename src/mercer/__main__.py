"""``python -m mercer`` is the command ``mercer``."""

from mercer.cli.main import main

main()
