"""The command line: tables in, models and predictions out.

`mercer.cli.main.main` is the command `mercer`. Nothing here is imported by the rest of Mercer, and
a command imports what it needs when it runs, so that ``mercer --help`` answers at once.
"""
