"""What a user does, as one documented call each; nothing here prints, and errors are exceptions (`EpcheckError`).

    from epcheck import api

    result = api.run(api.RunOptions(targets=("dml",), operators=("Slice",)))
    print(result.folder, result.conforms)

A call takes one frozen dataclass of options. What takes long reports to a `Progress`. Importing this package imports
none of the calls: each is loaded when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
