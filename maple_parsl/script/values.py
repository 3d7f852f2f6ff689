"""What is known about a shell value before the script runs.

A :class:`Value` is a row of parts: text that is certain, and :class:`Symbol` where it is only known what kind of
thing will stand there (the first host, a rank, a number from the job's id) or nothing at all (kind ``unknown``).

Kinds: ``first_host`` ``last_host`` ``host`` (of index ``detail``) ``batch_host`` ``batch_host_ip`` ``first_host_ip``
``host_ip`` ``host_list`` ``hosts_csv`` ``nodelist`` (Slurm's short form) ``node_file`` (its path) ``node_lines``
(its lines, repeated hosts) ``node_count`` ``job_id`` ``random`` ``free_port`` ``gpu_count`` ``cpu_count``
``per_task`` (differs in each process: the variable's name is ``detail``) ``batch_zero`` (a per-task variable read
in the batch shell, where it is 0) ``this_host`` (read in a task: differs per node) ``loop`` ``positional``
``environment`` (inherited) ``unset`` ``number`` (computed) ``choice`` (one of ``options``) ``unknown``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

_MOST_OPTIONS = 8


@dataclass(frozen=True, slots=True)
class Symbol:
    """A part that is not text yet.

    Attributes:
        kind, detail: see the module. low, high: bounds where it is a number.
        derived: computed from a thing of this kind rather than the thing itself.
        options: the possible values of a ``choice``.
    """

    kind: str
    detail: str = ""
    low: int | None = None
    high: int | None = None
    derived: bool = False
    options: tuple[Value, ...] = ()

    def __str__(self) -> str:
        return f"<{self.kind}{':' + self.detail if self.detail else ''}>"


Part = str | Symbol


@dataclass(frozen=True, slots=True)
class Value:
    """Parts in order; no part: the empty string.

    Attributes:
        parts: adjacent texts are joined.
        assumed: rests on a default (``${X:-2}``) that the environment at submission may override.
    """

    parts: tuple[Part, ...] = ()
    assumed: bool = field(default=False, compare=False)

    @property
    def is_const(self) -> bool:
        """Certain text (the empty string too)."""
        return not self.parts or (len(self.parts) == 1 and isinstance(self.parts[0], str))

    @property
    def text(self) -> str | None:
        """The text where it is certain, else None."""
        if not self.parts:
            return ""
        first = self.parts[0]
        return first if len(self.parts) == 1 and isinstance(first, str) else None

    @property
    def symbol(self) -> Symbol | None:
        """The only part, where that is a symbol."""
        first = self.parts[0] if len(self.parts) == 1 else None
        return first if isinstance(first, Symbol) else None

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """Every symbol in it, those of choices too."""
        found: list[Symbol] = []
        for part in self.parts:
            if isinstance(part, Symbol):
                found.append(part)
                for option in part.options:
                    found.extend(option.symbols)
        return tuple(found)

    @property
    def is_unknown(self) -> bool:
        """Some part of it cannot be told at all."""
        return any(s.kind == "unknown" for s in self.symbols)

    @property
    def is_known(self) -> bool:
        return not self.is_unknown

    def is_a(self, *kinds: str) -> bool:
        """It is one thing of one of these kinds, not computed from it."""
        symbol = self.symbol
        return symbol is not None and not symbol.derived and symbol.kind in kinds

    def has(self, *kinds: str) -> bool:
        """One of these kinds occurs in it, computed or not."""
        return any(s.kind in kinds for s in self.symbols)

    @property
    def low(self) -> int | None:
        """Smallest number it can be."""
        number = self.number
        if number is not None:
            return number
        symbol = self.symbol
        if symbol is not None and symbol.kind == "choice":
            bounds = [o.low for o in symbol.options]
            return min((b for b in bounds if b is not None), default=None) if None not in bounds else None
        return symbol.low if symbol else None

    @property
    def high(self) -> int | None:
        """Greatest number it can be."""
        number = self.number
        if number is not None:
            return number
        symbol = self.symbol
        if symbol is not None and symbol.kind == "choice":
            bounds = [o.high for o in symbol.options]
            return max((b for b in bounds if b is not None), default=None) if None not in bounds else None
        return symbol.high if symbol else None

    @property
    def number(self) -> int | None:
        """The whole number it certainly is."""
        text = self.text
        if text is not None:
            text = text.strip()
            digits = text[1:] if text[:1] in "+-" else text
            return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None
        symbol = self.symbol
        return symbol.low if symbol and symbol.low is not None and symbol.low == symbol.high else None

    @property
    def candidates(self) -> tuple[Value, ...]:
        """What it can be: itself, or each option of the choice it is."""
        symbol = self.symbol
        if symbol is None or symbol.kind != "choice":
            return (self,)
        return tuple(c for option in symbol.options for c in option.candidates)

    def words(self) -> list[Value]:
        """Split at blanks, as an unquoted expansion is."""
        if not self.parts:
            return []
        done: list[list[Part]] = []
        current: list[Part] = []
        for part in self.parts:
            if isinstance(part, Symbol):
                current.append(part)
                continue
            pieces = part.split()
            if part[:1].isspace() and current:
                done.append(current)
                current = []
            for index, piece in enumerate(pieces):
                if index:
                    done.append(current)
                    current = []
                current.append(piece)
            if pieces and part[-1:].isspace():
                done.append(current)
                current = []
        if current:
            done.append(current)
        return [join(parts, self.assumed) for parts in done]

    def split(self, mark: str) -> list[Value]:
        """Split at a character of the certain text."""
        done: list[list[Part]] = [[]]
        for part in self.parts:
            if isinstance(part, Symbol):
                done[-1].append(part)
                continue
            first, *rest = part.split(mark)
            done[-1].append(first)
            done.extend([piece] for piece in rest)
        return [join(parts, self.assumed) for parts in done]

    def __add__(self, other: Value) -> Value:
        return join((*self.parts, *other.parts), self.assumed or other.assumed)

    def __str__(self) -> str:
        return "".join(part if isinstance(part, str) else str(part) for part in self.parts)


def join(parts: Iterable[Part], assumed: bool = False) -> Value:
    """A value of these parts, adjacent texts joined."""
    row: list[Part] = []
    for part in parts:
        if isinstance(part, str):
            if not part:
                continue
            if row and isinstance(row[-1], str):
                row[-1] += part
                continue
        row.append(part)
    return Value(tuple(row), assumed)


def const(text: object) -> Value:
    """Certain text."""
    text = str(text)
    return Value((text,)) if text else EMPTY


def sym(kind: str, detail: str = "", low: int | None = None, high: int | None = None, derived: bool = False) -> Value:
    """A value that is one symbol."""
    return Value((Symbol(kind, detail, low, high, derived),))


def unknown(why: str = "") -> Value:
    """Nothing is known; ``why`` tells two unknowns apart."""
    return Value((Symbol("unknown", why[:200]),))


def choice(values: Iterable[Value]) -> Value:
    """One of several; equal ones count once, too many are unknown."""
    distinct: list[Value] = []
    for value in values:
        for candidate in value.candidates:
            if candidate not in distinct:
                distinct.append(candidate)
        if len(distinct) > _MOST_OPTIONS:
            return unknown("many values")
    if len(distinct) == 1:
        return distinct[0]
    if not distinct:
        return EMPTY
    detail = "|".join(str(v)[:40] for v in distinct)
    return Value((Symbol("choice", detail, options=tuple(distinct)),))


def assume(value: Value) -> Value:
    """The same value, resting on a default."""
    return replace(value, assumed=True)


def each(value: Value) -> Iterator[Value]:
    """Its candidates, at most a handful."""
    yield from value.candidates[:_MOST_OPTIONS]


EMPTY = Value()
