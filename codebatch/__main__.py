"""`python -m codebatch`."""

from codebatch.cli import main

main()
