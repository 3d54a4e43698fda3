"""`python -m hopscope` runs the command `hopscope`."""

from hopscope.cli.main import main

if __name__ == "__main__":
    main()
