"""A catalogue of made-up sites with all layers in a temporary folder."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from maple_parsl.catalogue import Catalogue

DATA = Path(__file__).parent / "data"


@dataclass
class World:
    root: Path
    group_path: str = ""

    def __post_init__(self) -> None:
        for folder in ("shipped", "group", "user/sites", "project/.maple/sites", "project/deep/er"):
            (self.root / folder).mkdir(parents=True)
        for file in DATA.glob("*.toml"):
            shutil.copy(file, self.root / "shipped")
        self.group_path = str(self.root / "group")

    @property
    def environ(self) -> dict[str, str]:
        return {"MAPLE_CONFIG_HOME": str(self.root / "user"), "MAPLE_SITE_PATH": self.group_path}

    @property
    def catalogue(self) -> Catalogue:
        return Catalogue.load(self.environ, self.root / "project/deep/er", self.root / "shipped")

    def write(self, layer: str, text: str, name: str = "tern.toml") -> Path:
        folders = {"group": "group", "user": "user/sites", "project": "project/.maple/sites"}
        path = self.root / folders.get(layer, layer) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path
