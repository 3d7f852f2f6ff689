"""What the steps of compose share: the inputs, the problems found, and where each value came from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Protocol

from maple_parsl.finding import Finding
from maple_parsl.plan import Layer, Origin
from maple_parsl.request import Request

if TYPE_CHECKING:
    from maple_parsl.site import Facts, NodeKind, Queue, Site


class SiteOrigin(Protocol):
    """Where one value of a site file stands."""

    @property
    def layer(self) -> str: ...
    @property
    def file(self) -> object: ...
    @property
    def source(self) -> str | None: ...
    @property
    def checked_on(self) -> date | None: ...


@dataclass
class Context:
    """State of one composition. ``problems`` stop it; ``findings`` go with the plan."""

    request: Request
    site: Site
    site_origin: Callable[[str], SiteOrigin | None]
    problems: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    provenance: dict[str, Origin] = field(default_factory=dict)

    def fact(self, key: str, facts: Facts | None, why: str) -> Origin:
        """Origin of a site fact; its own file and layer when the catalogue knows them."""
        known = self.site_origin(key)
        source = known.source if known else None
        checked = known.checked_on if known else None
        if known and known.layer != "catalogue":
            why = f"{why} (from the {known.layer} file {known.file})"
        return Origin(
            layer="site",
            why=why,
            source=source or (facts.source if facts else None),
            checked_on=checked or (facts.checked_on if facts else None),
        )

    def note(self, name: str, layer: Layer, why: str) -> None:
        """Remember where the value called ``name`` came from."""
        self.provenance[name] = Origin(layer=layer, why=why)

    def finding(self, rule: str, fault_class: str, severity: str, message: str, **more: str | None) -> None:
        self.findings.append(
            Finding.model_validate(
                {"rule": rule, "class": fault_class, "severity": severity, "message": message, **more}
            )
        )


def stated(why: str = "stated in the request") -> Origin:
    return Origin(layer="stated", why=why)


def computed(why: str) -> Origin:
    return Origin(layer="computed", why=why)


@dataclass(frozen=True)
class Target:
    """The queue and node kind chosen for a request; queue is None where the site has none."""

    kind_name: str
    kind: NodeKind
    queue: Queue | None
