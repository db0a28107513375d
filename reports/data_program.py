"""What `data_process` starts: make the reports of the run in a folder that are no page, and print what went wrong."""

from __future__ import annotations

import sys
from pathlib import Path

from epcheck.reports.runs.run_folder import StoreError
from epcheck.reports.write import write_data


def main(folder: str) -> None:
    """One sentence on standard output, in UTF-8, if some of the reports cannot be made."""
    try:
        write_data(Path(folder))
    except StoreError as error:
        sys.stdout.buffer.write(str(error).encode("utf-8", "surrogateescape"))


if __name__ == "__main__":
    main(sys.argv[1])
