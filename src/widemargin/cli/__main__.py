"""Run the command line with ``python -m widemargin.cli``."""

from widemargin.cli.main import main

if __name__ == "__main__":
    main()
