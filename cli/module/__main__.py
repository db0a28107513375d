"""`python -m epcheck`: the command, where no `epcheck` is on the PATH.

It is installed as `epcheck.__main__`. `-m` puts the working directory first on `sys.path`, where there may be modules
of somebody else: it goes before anything of ours is imported.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]
    from epcheck.cli.start import main

    main()
