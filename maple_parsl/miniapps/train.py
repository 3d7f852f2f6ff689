#!/usr/bin/env python3
"""The entry point: run it as a script, from any copy of this folder (``__init__.py`` tells all)."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

COPIED_PACKAGE = "maple_miniapps"
"""The name under which a copied folder's modules are imported, whatever the folder is called."""


def load_folder() -> str:
    """Makes this file's folder importable as a package and returns the package's name.

    The folder itself leaves the import path: its ``data.py`` must not stand for another module of that name.
    """
    folder = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if not entry or Path(entry).resolve() != folder]
    spec = importlib.util.spec_from_file_location(
        COPIED_PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[COPIED_PACKAGE] = module
    spec.loader.exec_module(module)
    return COPIED_PACKAGE


if __name__ == "__main__":
    package = __package__ or load_folder()
    sys.exit(importlib.import_module(f"{package}.program").main())
