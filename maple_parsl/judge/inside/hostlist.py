"""Slurm's host lists: ``nid[001000-001001,001004]``."""

from __future__ import annotations

import re


def expanded(text: str) -> list[str]:
    """The names a host list stands for."""
    found: list[str] = []
    for item in re.findall(r"[^,\[]+(?:\[[^\]]*\][^,\[]*)*", text):
        match = re.fullmatch(r"([^\[]*)\[([^\]]*)\](.*)", item)
        if not match:
            found.append(item)
            continue
        for part in match[2].split(","):
            first, dash, last = part.partition("-")
            for number in range(int(first), int(last if dash else first) + 1):
                found += expanded(f"{match[1]}{number:0{len(first)}d}{match[3]}")
    return found


def compressed(names: list[str]) -> str:
    """A host list for names; runs of numbers become ranges."""
    groups: dict[tuple[str, int, str], list[int]] = {}
    plain = []
    for name in names:
        match = re.fullmatch(r"(.*?)(\d+)(\D*)", name)
        if match:
            groups.setdefault((match[1], len(match[2]), match[3]), []).append(int(match[2]))
        else:
            plain.append(name)
    for (head, width, tail), numbers in groups.items():
        runs: list[list[int]] = []
        for number in sorted(numbers):
            if runs and number == runs[-1][1] + 1:
                runs[-1][1] = number
            else:
                runs.append([number, number])
        if len(runs) == 1 and runs[0][0] == runs[0][1]:
            plain.append(f"{head}{runs[0][0]:0{width}d}{tail}")
            continue
        parts = [f"{a:0{width}d}" if a == b else f"{a:0{width}d}-{b:0{width}d}" for a, b in runs]
        plain.append(f"{head}[{','.join(parts)}]{tail}")
    return ",".join(plain)


def counted(numbers: list[int]) -> str:
    """Slurm's form of a number per node: ``4(x2),1``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][0] == number:
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    return ",".join(f"{number}(x{times})" if times > 1 else str(number) for number, times in runs)
