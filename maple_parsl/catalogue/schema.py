"""Questions about the shape of a site, answered from its model."""

from __future__ import annotations

import types
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from maple_parsl.site import Facts, Site

REQUIRED = tuple(name for name, field in Site.model_fields.items() if field.is_required())


def model_at(path: Sequence[str | int]) -> type[BaseModel] | None:
    """The model that the table at ``path`` must satisfy; None where it has no fixed keys."""
    here: Any = Site
    for key in path:
        here = _step(here, key)
    return here if isinstance(here, type) and issubclass(here, BaseModel) else None


@cache
def is_facts(path: tuple[str, ...]) -> bool:
    """Whether the table at ``path`` carries a source and a date of its own."""
    model = model_at(path)
    return model is not None and issubclass(model, Facts)


def is_collection(path: Sequence[str | int]) -> bool:
    """Whether the table at ``path`` holds named entries, such as ``kinds``."""
    return bool(path) and model_at(path) is None and model_at((*path, "x")) is not None


def _step(here: Any, key: str | int) -> Any:
    if isinstance(here, type) and issubclass(here, BaseModel):
        field = here.model_fields.get(str(key))
        return _bare(field.annotation) if field else None
    origin, arguments = get_origin(here), get_args(here)
    if origin is dict:
        return _bare(arguments[1])
    return _bare(arguments[0]) if origin is tuple else None


def _bare(annotation: Any) -> Any:
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation = get_args(annotation)[0]
        elif origin in (Union, types.UnionType):
            annotation = next(part for part in get_args(annotation) if part is not type(None))
        else:
            return annotation
