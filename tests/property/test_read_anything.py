"""Whatever the text, the reader gives a script back, soon."""

from __future__ import annotations

import random
from time import process_time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maple_parsl.script.rankmap import rank_map
from maple_parsl.script.reader import read
from tests import cases

REAL = cases.plan("perlmutter").script.encode()
PIECES = (
    "#SBATCH -N 2\n", "#PBS -l select=2:ncpus=4\n", "srun ", "bash -c ", "'", '"', "$", "${A:-", "}", "$(", ")", "`",
    "<<EOF\n", "EOF\n", "<<<", "A=", "A+=(", "((", "))", "if ", "then\n", "fi\n", "for i in ", "do\n", "done\n",
    "case x in ", ";;", "esac\n", "f() {", "}\n", "f ", "| ", "&& ", "\\", "\n", "torchrun --nnodes=$N ", "eval ",
    "[[ $a == b ]] ", "$SLURM_PROCID", "${a[@]}", "\x00", "\ufeff", "\r\n", "\u2013", "\ue000", "local x=1\n",
    "return\n",
)  # fmt: skip
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@QUICK
@given(st.binary(max_size=400))
def test_bytes(data: bytes) -> None:
    rank_map(read(data))


@QUICK
@given(st.text(max_size=300))
def test_text(text: str) -> None:
    rank_map(read(text))


@QUICK
@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_shell_like(pieces: list[str]) -> None:
    script = read("".join(pieces))
    for reference in script.all_references:
        assert reference.place.line >= 1
    rank_map(script)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_a_real_script_damaged(seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(REAL)
    for _ in range(chance.randint(1, 12)):
        at = chance.randrange(len(data))
        kind = chance.randrange(4)
        if kind == 0:
            del data[at : at + chance.randint(1, 60)]
        elif kind == 1:
            data[at:at] = chance.choice(PIECES).encode()
        elif kind == 2:
            data[at] = chance.randrange(256)
        else:
            data[at:at] = data[chance.randrange(len(data)) :][:80]
    rank_map(read(bytes(data)))


@pytest.mark.parametrize(
    "text",
    [
        b"echo hello $X\n" * 700_000, b"a | " * 60_000, b"cat <<EOF " * 20_000, b"A=1 B=2\n" * 40_000, b"(" * 200_000,
        b"f() { f; g; }\ng() { f; f; }\nf\n", b":(){ :|:& };:\n", b"A=a\n" + b"A=$A$A$A$A\n" * 60 + b"srun $A\n",
        b"A=(a a)\n" + b'A=("${A[@]}" "${A[@]}")\n' * 60 + b'srun "${A[@]}"\n',
        b"".join(b"f%d() { f%d; f%d; }\n" % (i, i + 1, i + 1) for i in range(60)) + b"f60() { :; }\nf0\n",
        b"A='eval \"$A\"'\neval \"$A\"\n", b"srun bash -c 'torchrun x\n", b"cat <<EOF\nfoo\n", b"", b"\0" * 1000,
        b"".join(b"if a; then A=$A%d; else A=$A-%d; fi\n" % (i, i) for i in range(300)),
    ],
)  # fmt: skip
def test_hostile_texts_end(text: bytes) -> None:
    start = process_time()
    rank_map(read(text))
    assert process_time() - start < 20
