"""What every group of facts has: a source and the day it was checked."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from maple_parsl.directive import fault

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


def _one_line(text: str) -> str:
    if any(character in text for character in "\n\r\0"):
        raise ValueError("must be one line")
    return text


Line = Annotated[str, AfterValidator(_one_line)]


def _option(text: str) -> str:
    if wrong := fault(text):
        raise ValueError(wrong)
    return text


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"is not a regular expression ({error})") from None
    return text


Option = Annotated[str, AfterValidator(_option)]
Expression = Annotated[str, AfterValidator(_expression)]
Names = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@,+/-]*$")]
Features = Annotated[str, Field(pattern=r"^[A-Za-z0-9._&|()\[\]*,!:=-]+$")]
Count = Annotated[int, Field(ge=1)]
Amount = Annotated[float, Field(ge=0)]


class Model(BaseModel):
    """Base of the site's parts: immutable, and a misspelt key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Facts(Model):
    """A group of facts checked together.

    Attributes:
        source: where they are stated (document and page, or the command that printed them).
        checked_on: the day someone last compared them with the source.
        note: what a reader should know; parts that are inferred are named here.
    """

    source: str
    checked_on: date
    note: str | None = None
