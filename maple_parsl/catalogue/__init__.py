"""The sites Maple knows: the shipped catalogue, and what groups, users and projects lay over it.

Layers, later wins: catalogue < group (``MAPLE_SITE_PATH``) < user (``~/.config/maple/sites``) < project
(``.maple/sites``). Files may be partial: tables merge, queues merge by name, other values are replaced. Every
value remembers the file, source and date behind it.
"""

from __future__ import annotations

from maple_parsl.catalogue.catalogue import Catalogue
from maple_parsl.catalogue.layers import user_folder
from maple_parsl.catalogue.record import Layer, Origin, SiteRecord

__all__ = ["Catalogue", "Layer", "Origin", "SiteRecord", "user_folder"]
