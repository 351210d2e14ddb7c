"""`python -m merq` is the `merq` command."""

from merq.cli.main import main

main()
