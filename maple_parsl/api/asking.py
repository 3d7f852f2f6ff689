"""From plain words to a verified plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maple_parsl.api import composing

if TYPE_CHECKING:
    from maple_parsl.agents import Answer, Part
    from maple_parsl.inference import Backend


def ask(
    words: str,
    *,
    stated: Mapping[str, Any] | None = None,
    model: Backend | None = None,
    without: Collection[Part] = (),
    cwd: str | Path | None = None,
) -> Answer:
    """Say in plain words what to launch; the answer is a verified plan, or the questions that stand in its way.

    Nothing is submitted, and nothing in the words is run. What is not stated is asked for, never guessed::

        answer = maple.ask("train.py with fsdp on 2 Polaris nodes, 1 hour in debug, project datascience")
        answer.plan or print(answer)

    Args:
        words: plain words, JSON or YAML; see ``answer.reading`` for what was understood, and where.
        stated: fields of :class:`Request` stated apart from the words; they win.
        model: a language model for what the grammar leaves open; by default the one of the agents' settings (none).
        without: parts to leave out (``model``, ``retrieval``, ``verification``, ``correction``), for measurements.

    Raises:
        ConfigurationError: a site, template or agent file is wrong.
    """
    from maple_parsl.agents import answer

    catalogue = composing.catalogue_at(cwd)
    return answer(
        words,
        catalogue,
        lambda request: composing.composed(request, catalogue),
        composing.templates(),
        model=model,
        stated=stated,
        without=without,
    )
