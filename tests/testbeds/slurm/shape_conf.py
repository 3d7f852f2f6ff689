from __future__ import annotations
from pathlib import Path
from .shapes import SiteShape
def shape_files(shape: SiteShape, prefix: Path) -> dict[str, str]: return {}
