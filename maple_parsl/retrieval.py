"""Retrieval: request → templates in the order a person should try them, each with its reasons.

Facts decide first: what starts the paradigm, works with the site's backend and is installed there. Text similarity
only orders what the facts leave open, for free wording and for users' own templates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maple_parsl.request import Request
    from maple_parsl.site import Site
    from maple_parsl.template import Template

SIMILAR = 0.35  # a name or title this near to the words is worth a mention


@dataclass(frozen=True)
class Match:
    """One template: whether it fits, how well, and why. ``against``: why it does not."""

    name: str
    fits: bool
    score: float
    reasons: tuple[str, ...] = ()
    against: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "fits": self.fits,
            "score": self.score,
            "reasons": list(self.reasons),
            "against": list(self.against),
        }


def retrieve(request: Request, site: Site | None, templates: Mapping[str, Template], words: str = "") -> list[Match]:
    """All templates, those that fit first, best first; where none fits, the nearest come first."""
    similar = _similarity(words, templates) if words else {}
    matches = [_match(template, request, site, similar.get(template.name, 0.0)) for template in templates.values()]
    return sorted(matches, key=lambda match: (not match.fits, len(match.against), -match.score, match.name))


def _match(template: Template, request: Request, site: Site | None, similar: float) -> Match:
    reasons, against, score = [], [], similar
    if request.template is not None and request.template.lower() == template.name.lower():
        reasons.append("it was named")
        score += 10
    elif request.template is not None and request.template.lower() == template.framework.lower():
        reasons.append(f"it starts {template.framework}, which was named")
        score += 5
    elif request.template is not None:
        against.append(f"{request.template} was asked for, and it starts {template.framework}")
    if request.paradigm is not None:
        if request.paradigm.lower() in template.paradigms:
            reasons.append(f"it starts {request.paradigm}")
        else:
            against.append(f"it does not start {request.paradigm}; it has {', '.join(template.paradigms)}")
    if template.max_nodes is not None and (request.nodes or 1) > template.max_nodes:
        against.append(f"it starts at most {template.max_nodes} nodes")
    if site is not None:
        score += _at_site(template, request, site, reasons, against)
    if not template.needs:
        reasons.append("it needs nothing but PyTorch")
        score += 0.5
    if similar >= SIMILAR:
        reasons.append(f"its description is like the words ({similar:.2f})")
    return Match(template.name, not against, round(score, 3), tuple(reasons), tuple(against))


def _at_site(template: Template, request: Request, site: Site, reasons: list[str], against: list[str]) -> float:
    queue = site.queue(request.queue) if request.queue else None
    kinds = [site.kinds[name] for name in queue.kinds] if queue else list(site.kinds.values())
    backends = {kind.backend for kind in kinds}
    if template.backends and not backends & set(template.backends):
        against.append(
            f"it works with {', '.join(template.backends)}, and {site.title} has {', '.join(sorted(backends))}"
        )
    elif template.backends:
        reasons.append(f"it works with {', '.join(sorted(backends & set(template.backends)))} of {site.title}")
    launcher = site.launchers.get(kinds[0].launcher)
    if launcher is not None and template.style == launcher.preferred_style:
        reasons.append(f"{site.title} prefers {template.style.replace('-', ' ')} starts")
        return 2.0
    return 0.0


def _similarity(words: str, templates: Mapping[str, Template]) -> dict[str, float]:
    """How like the words each template's description is, 0 to 1: the rarer words by BM25, the spelling by ratio."""
    from rapidfuzz.fuzz import WRatio, partial_ratio

    names = tuple(templates)
    texts = tuple(_text(template) for template in templates.values())
    scores = _bm25(texts, words[:2000].lower())
    top = max(scores, default=0.0) or 1.0
    made = {}
    for name, text, value in zip(names, texts, scores, strict=True):
        named = 1.0 if len(name) > 3 and partial_ratio(name.lower(), words.lower()) > 92 else 0.0
        spelt = WRatio(text, words[:300].lower()) / 100
        made[name] = round(0.5 * named + 0.35 * (value / top) + 0.15 * spelt, 4)
    return made


def _text(template: Template) -> str:
    return " ".join(
        [template.name, template.title, template.framework, *template.paradigms, template.note or ""]
    ).lower()


def _bm25(texts: tuple[str, ...], words: str) -> list[float]:
    if not texts:
        return []
    import bm25s

    tokens = bm25s.tokenize([words], show_progress=False, return_ids=False)[0]
    if not tokens:
        return [0.0] * len(texts)
    return [float(score) for score in _index(texts).get_scores(list(tokens))]


@lru_cache(maxsize=8)
def _index(texts: tuple[str, ...]) -> Any:
    import bm25s

    index = bm25s.BM25()
    index.index(bm25s.tokenize(list(texts), show_progress=False), show_progress=False)
    return index
