"""Options of launchers, read as each launcher reads its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class UnknownOption(Exception):
    """The launcher has no such option; it would print its usage and end."""


class Options:
    """What was given: the last value by the option's canonical name, all values, and the command behind them."""

    def __init__(self) -> None:
        self.given: list[tuple[str, str]] = []
        self.command: list[str] = []

    def get(self, name: str) -> str | None:
        found = [value for key, value in self.given if key == name]
        return found[-1] if found else None

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.given if key == name]

    def number(self, name: str) -> int | None:
        value = self.get(name)
        if value is None:
            return None
        try:
            return int(value)
        except ValueError:
            raise UnknownOption(f"invalid value {value!r} for {name}") from None

    def has(self, name: str) -> bool:
        return any(key == name for key, _ in self.given)


def read(
    words: Sequence[str],
    valued: Mapping[str, str],
    flags: Mapping[str, str],
    *,
    optional: Mapping[str, str] | None = None,
    glued: bool = False,
    dashes: bool = False,
    pairs: Sequence[str] = (),
) -> Options:
    """Read options up to the first word that is none.

    Args:
        valued: options that take a value, by spelling: their canonical name. flags: those that take none.
        optional: take a value only behind an equals sign.
        glued: a short option's value may follow without a blank (-N2). dashes: ``-`` and ``_`` in names are one.
        pairs: canonical names of options that take two words.
    """
    found, rest = Options(), list(words)
    optional = optional or {}
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        name = "--" + name[2:].replace("_", "-") if dashes and name.startswith("--") else name
        if name in optional:
            found.given.append((optional[name], value))
        elif name in flags and not equals:
            found.given.append((flags[name], ""))
        elif name in valued:
            if not equals:
                if not rest:
                    raise UnknownOption(f"option {name} needs a value")
                value = rest.pop(0)
            if valued[name] in pairs:
                value = f"{value}={rest.pop(0) if rest else ''}"
            found.given.append((valued[name], value))
        elif glued and not word.startswith("--") and word[:2] in valued and len(word) > 2:
            found.given.append((valued[word[:2]], word[2:].removeprefix("=")))
        elif glued and not word.startswith("--") and word[:2] in optional and len(word) > 2:
            found.given.append((optional[word[:2]], word[2:].removeprefix("=")))
        else:
            raise UnknownOption(f"unrecognized option '{word}'")
    found.command = rest
    return found
