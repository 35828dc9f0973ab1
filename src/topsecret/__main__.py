"""``python -m topsecret`` is the command line."""

from topsecret.cli import main

if __name__ == "__main__":
    main()
