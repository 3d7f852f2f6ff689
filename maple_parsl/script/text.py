"""Bytes of a script -> text and facts of the file: encoding, line ends, look-alike characters, shebang."""

from __future__ import annotations

import re
from bisect import bisect_right

from maple_parsl.script.model import Fault, Format, OddCharacter, Place, Shebang

LARGEST = 1 << 18
_ODD = {
    "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "-", "\u2015": "-", "\u2212": "-",
    "\ufe58": "-", "\ufe63": "-", "\uff0d": "-", "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201b": "'",
    "\u00b4": "'", "\u02bc": "'", "\u2032": "'", "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u201f": '"',
    "\u2033": '"', "\u00ab": '"', "\u00bb": '"', "\u00a0": " ", "\u2007": " ", "\u202f": " ", "\u2009": " ",
    "\u200a": " ", "\u2002": " ", "\u2003": " ", "\u3000": " ", "\u200b": "", "\u200c": "", "\u200d": "",
    "\u2060": "", "\ufeff": "", "\u2026": "...", "\uff1d": "=", "\uff1a": ":", "\uff04": "$", "\uff08": "(",
}  # fmt: skip
_ODD_PATTERN = re.compile("[" + "".join(_ODD) + "]")
_MOST = 200


class Lines:
    """Places in a text, from character or byte offsets."""

    def __init__(self, text: str, file: str = "") -> None:
        self.file = file
        self.text = text
        self.data = text.encode("utf-8", "surrogatepass")
        self.ascii = len(self.data) == len(text)
        self._starts = [0]
        find = self.data.find
        at = find(b"\n")
        while at >= 0:
            self._starts.append(at + 1)
            at = find(b"\n", at + 1)

    def at(self, offset: int) -> Place:
        """Place of a byte offset."""
        index = bisect_right(self._starts, offset) - 1
        start = self._starts[index]
        column = offset - start
        if not self.ascii:
            column = len(self.data[start:offset].decode("utf-8", "replace"))
        return Place(index + 1, column + 1, self.file)

    def line(self, number: int) -> int:
        """Byte offset of a line's start."""
        return self._starts[min(number, len(self._starts)) - 1]

    def __len__(self) -> int:
        return len(self._starts)


def decode(raw: str | bytes) -> tuple[str, Format, list[Fault]]:
    """The text with ``\\n`` line ends and no byte order mark, and what was found."""
    faults: list[Fault] = []
    bom, utf8, size = False, True, len(raw)
    if isinstance(raw, bytes):
        if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
            faults.append(Fault("utf16", Place(1, 1), "UTF-16"))
            text, utf8 = raw[:LARGEST].decode("utf-16", "replace"), False
        else:
            bom = raw[:3] == b"\xef\xbb\xbf"
            body = raw[3:] if bom else raw
            if len(body) > LARGEST:
                faults.append(Fault("too_large", Place(1, 1), f"{size} bytes; the first {LARGEST} are read"))
                body = body[: body.rfind(b"\n", 0, LARGEST) + 1 or LARGEST]
            try:
                text = body.decode()
            except UnicodeDecodeError as error:
                before = body[: error.start]
                row = before.count(b"\n") + 1
                column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
                faults.append(Fault("bad_utf8", Place(row, column), f"byte 0x{body[error.start]:02x}"))
                text, utf8 = body.decode("utf-8", "replace"), False
    else:
        bom = raw[:1] == "\ufeff"
        text = raw[1:] if bom else raw
        if len(text) > LARGEST:
            faults.append(Fault("too_large", Place(1, 1), f"{size} characters; the first {LARGEST} are read"))
            text = text[:LARGEST]
        text = re.sub("[\ud800-\udfff]", "\ufffd", text)
    nul = text.find("\0")
    if nul >= 0:
        faults.append(Fault("nul", Place(text.count("\n", 0, nul) + 1, nul - text.rfind("\n", 0, nul)), "NUL"))
        if text.count("\0") * 50 > len(text) or text.startswith("\x7fELF"):
            faults.append(Fault("binary", Place(1, 1), "this is not text"))
        text = text.replace("\0", " ")
    crlf: tuple[int, ...] = ()
    if "\r" in text:
        crlf = tuple(n for n, row in enumerate(text.split("\n"), 1) if row.endswith("\r"))
        text = text.replace("\r\n", "\n").replace("\r", "\n" if "\n" not in text else " ")
    if not text.strip():
        faults.append(Fault("empty", Place(1, 1), "no text"))
    return text, _facts(text, size, bom, crlf, nul >= 0, utf8), faults


def _facts(text: str, size: int, bom: bool, crlf: tuple[int, ...], nul: bool, utf8: bool) -> Format:
    odd: list[OddCharacter] = []
    shebang = None
    blanks: list[Place] = []
    at = text.find("#!") if not text.startswith("#!") else 0
    while at >= 0:  # a later line that starts with it
        start = text.rfind("\n", 0, at) + 1
        if not text[start:at].strip() and not text[at + 2 : at + 40].lstrip()[:1].isspace():
            end = text.find("\n", at)
            row = text[at : end if end >= 0 else None]
            if "/" in row or "bash" in row:
                number = text.count("\n", 0, at) + 1
                shebang = Shebang(row.rstrip(), Place(number, at - start + 1), at > 0 or bom)
                break
        at = text.find("#!", at + 2)
    if not text.isascii():
        for match in _ODD_PATTERN.finditer(text):
            start = text.rfind("\n", 0, match.start()) + 1
            before = text[start : match.start()]
            comment = before.lstrip().startswith("#") and not re.match(r"\s*#(SBATCH|PBS|BSUB|!)", before)
            place = Place(text.count("\n", 0, start) + 1, len(before) + 1)
            odd.append(OddCharacter(place, match[0], _ODD[match[0]], comment or " # " in before))
            if len(odd) >= _MOST:
                break
    for match in re.finditer(r"\\[ \t]+$", text, re.M):
        start = text.rfind("\n", 0, match.start()) + 1
        if not text[start:].lstrip().startswith("#"):
            blanks.append(Place(text.count("\n", 0, start) + 1, match.start() - start + 1))
        if len(blanks) >= _MOST:
            break
    return Format(size, text.count("\n") + 1, bom, crlf, nul, utf8, tuple(odd), shebang, tuple(blanks))
