"""The store and the reports made from it.

A run is a folder: `create` it, `Journal.append` its records, `Journal.close` it, `resume` it when it was interrupted;
`merge_runs` makes one of several.
`read_run` and `read_records` give it back; every report is made from them, so it can be made again at any time:
`write_all` makes all of them at once. Importing this package imports none of that: each is loaded when it is first
used, since pyarrow, which few commands need, takes 36 MiB.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
