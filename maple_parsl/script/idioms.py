"""What the usual commands print, as far as it can be told: hosts, counts, ports, names."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from maple_parsl.script.arithmetic import evaluate
from maple_parsl.script.model import Arg
from maple_parsl.script.values import EMPTY, Symbol, Value, const, join, sym, unknown

Lookup = Callable[[str], Value]
_HOSTS = ("host_list", "node_lines")
_ADDRESS_FLAGS = {"-i", "-I", "--ip-address", "--all-ip-addresses", "--ip-addresses"}
_ONE_HOST = ("first_host", "last_host", "host", "batch_host", "this_host", "submit_host")
_FREE_PORT = re.compile(r"bind\(|free_port|get_open_port|find_free|unused_port|ephemeral_port")


def output(words: Sequence[Arg], stdin: Value | None, context: str, lookup: Lookup) -> Value:
    """Standard output of one command."""
    if not words:
        return EMPTY
    first = words[0].value.text
    if first is None:
        return unknown(str(words[0].value))
    name = first.rpartition("/")[2]
    args = [w.value for w in words[1:]]
    texts = [a.text or "" for a in args]
    source = " ".join(str(w.value) for w in words)
    if name in _STARTERS:
        return _started(name, args, texts, context, lookup, source)
    handler = _COMMANDS.get(name)
    if handler is not None:
        return handler(args, texts, stdin, lookup, source)
    if name in ("hostname", "hostnamectl", "uname"):
        return _hostname(name, texts, context)
    if _FREE_PORT.search(source) or "port" in name.lower():
        return sym("free_port", source[:80], 1, 65535)
    return unknown(source)


def _plain(args: list[Value]) -> list[Value]:
    return [a for a in args if not (a.text or "").startswith("-")]


def _file(value: Value, lookup: Lookup) -> Value:
    """Content of a file, where it is the scheduler's list of nodes."""
    symbol = value.symbol
    if symbol and symbol.kind == "node_file":
        return sym("node_lines", symbol.detail)
    return unknown(f"content of {value}")


def _input(args: list[Value], stdin: Value | None, lookup: Lookup) -> Value:
    files = _plain(args)
    if files:
        return _file(files[-1], lookup)
    return stdin if stdin is not None else unknown("standard input")


def _hostname(name: str, texts: list[str], context: str) -> Value:
    here = "batch_host" if context == "batch" else "this_host"
    if name == "uname" and "-n" not in texts and "--nodename" not in texts:
        return unknown("uname")
    flags = set(texts)
    address = flags & _ADDRESS_FLAGS
    if address:
        return sym(here + "_ip", f"hostname {sorted(address)[0]}")
    return sym(here, " ".join(["hostname", *texts]))


def _started(name: str, args: list[Value], texts: list[str], context: str, lookup: Lookup, source: str) -> Value:
    """``srun … hostname`` or ``ssh HOST hostname -I``: the host that answers."""
    where: Value | None = None
    for index, text in enumerate(texts):
        if text in ("-w", "--nodelist") and index + 1 < len(args):
            where = args[index + 1]
        else:
            first = args[index].parts[0] if args[index].parts else ""
            for mark in ("--nodelist=", "-w"):
                if isinstance(first, str) and first.startswith(mark) and where is None and text not in ("-w",):
                    where = join((first[len(mark) :], *args[index].parts[1:]))
    if name == "ssh":
        places = _plain(args)
        where = places[0] if places else None
        command = " ".join(str(a) for a in args)
    else:
        command = " ".join(texts)
    if "hostname" not in command and "ip addr" not in command and "uname -n" not in command:
        return unknown(source)
    address = "ip addr" in command or any(f in command.split() for f in _ADDRESS_FLAGS) or "hostname -I" in command
    if where is None:
        tasks = next((t for t in texts if re.match(r"(-n|--ntasks=?|-N|--nodes=?)1\b", t)), None)
        one = tasks is not None or ("1" in texts and ("-n" in texts or "--ntasks" in texts))
        if not one:
            return sym("hosts_csv", source) if not address else unknown(source)
        return sym("first_host_ip" if address else "first_host", source)
    symbol = where.symbol
    kind = symbol.kind if symbol and symbol.kind in _ONE_HOST else "host"
    return sym(kind + "_ip" if address else kind, source)


def _scontrol(args: list[Value], texts: list[str], stdin: Value | None, lookup: Lookup, source: str) -> Value:
    if texts[:1] == ["show"] and texts[1:2] and texts[1] in ("hostnames", "hostname", "hostnam"):
        of = args[2] if len(args) > 2 else None
        return sym("host_list", str(of) if of else "") if of is None or of.has("nodelist") else unknown(source)
    return unknown(source)


def _head(args: list[Value], texts: list[str], stdin: Value | None, lookup: Lookup, source: str) -> Value:
    count, files = _count(args, texts)
    value = _file(files[-1], lookup) if files else stdin if stdin is not None else unknown(source)
    symbol = value.symbol
    if symbol and symbol.kind in _HOSTS:
        return sym("first_host", symbol.detail) if count == 1 else Value((Symbol(symbol.kind, source, derived=True),))
    if value.text is not None and count is not None:
        return const("\n".join(value.text.split("\n")[:count]))
    return value


def _tail(args: list[Value], texts: list[str], stdin: Value | None, lookup: Lookup, source: str) -> Value:
    joined = " ".join(texts)
    characters = re.search(r"-c\s*(\d{1,2})\b", joined)
    value = stdin if stdin is not None else _input(args, None, lookup)
    symbol = value.symbol
    if characters:
        if value.text is not None:
            return const(value.text.rstrip("\n")[-int(characters[1]) :])
        if symbol and symbol.kind in ("job_id", "random"):
            return sym(symbol.kind, source, 0, 10 ** int(characters[1]) - 1, derived=True)
        return unknown(source)
    count, files = _count(args, texts)
    if files:
        value = _file(files[-1], lookup)
        symbol = value.symbol
    if symbol and symbol.kind in _HOSTS:
        if count == 1 and "+" not in joined:
            return sym("last_host", symbol.detail)
        return Value((Symbol(symbol.kind, source, derived=True),))
    return value if value.is_const and count == 1 and "\n" not in (value.text or "") else unknown(source)


def _count(args: list[Value], texts: list[str]) -> tuple[int | None, list[Value]]:
    """The number of ``-n 1``, ``-1``, ``-n1``, and the files."""
    count: int | None = 10
    files: list[Value] = []
    index = 0
    while index < len(args):
        text = texts[index]
        if text in ("-n", "--lines") and index + 1 < len(args):
            count = args[index + 1].number
            index += 1
        elif match := re.match(r"(?:-n|--lines=|-)(\d{1,6})\Z", text):
            count = int(match[1])
        elif not text.startswith("-"):
            files.append(args[index])
        index += 1
    return count, files


def _unique(args: list[Value], texts: list[str], stdin: Value | None, lookup: Lookup, source: str) -> Value:
    value = _input(args, stdin, lookup)
    symbol = value.symbol
    if symbol and symbol.kind in _HOSTS and (source.startswith("uniq") or any("u" in t for t in texts if t[:1] == "-")):
        return sym("host_list", source)
    return value


def _lines(args: list[Value], texts: list[str], stdin: Value | None, lookup: Lookup, source: str) -> Value:
    value = _input(args, stdin, lookup)
    symbol = value.symbol
    if symbol is None or "-c" in texts:
        if value.text is not None and "-l" in texts:
            return const(len(value.text.split("\n")))
        return const(len((value.text or "").split())) if value.text is not None and "-w" in texts else unknown(source)
    if symbol.kind == "host_list" and not symbol.derived:
        return lookup("SLURM_NNODES")
    if symbol.kind == "node_lines" and not symbol.derived:
        return sym("task_slots", source, 1)
    if symbol.kind == "gpu_list":
        return sym("gpu_count", source)
    return unknown(source)


def _awk(args: list[Value], texts: list[str], stdin: Value | None, lookup: Lookup, source: str) -> Value:
    program = next((t for t in texts if "{" in t or "seen" in t), "")
    value = _input(args[1:], stdin, lookup) if stdin is None else stdin
    symbol = value.symbol
    if symbol is None:
        return (
            value
            if value.is_const and "print $1" in program and len((value.text or "").split()) == 1
            else unknown(source)
        )
    if "!seen[" in program or "!a[" in program:
        return sym("host_list", source) if symbol.kind in _HOSTS else unknown(source)
    if symbol.kind in _HOSTS and re.search(r"NR\s*==\s*1\b", program):
        return sym("first_host", symbol.detail)
    if re.fullmatch(r"\s*\{\s*print \$1;?\s*\}\s*", program) or re.search(r"print \$(1|NF)\b", program):
        return value if symbol.kind in _ONE_HOST or symbol.kind.endswith("_ip") else unknown(source)
    if symbol.kind.endswith("_ip"):
        return value
    return unknown(source)


def _filter(args: list[Value], texts: list[str], stdin: Value | None, lookup: Lookup, source: str) -> Value:
    """sed, cut, tr, grep, xargs, paste …: a host stays a host, a list becomes joined or unknown."""
    value = stdin if stdin is not None else _input(args[1:], None, lookup)
    symbol = value.symbol
    if symbol is None:
        return unknown(source)
    if symbol.kind in _HOSTS:
        if source.startswith(("tr ", "paste ", "sed ")) and ("," in source):
            return sym("hosts_csv", symbol.detail)
        if source.startswith("sed ") and re.search(r"(-n\s*)?['\"]?1(p|q|!d)", source):
            return sym("first_host", symbol.detail)
        if source.startswith(("xargs", "paste")):
            return value
        if source.startswith(("sed", "cut")):
            return Value((Symbol(symbol.kind, source, derived=True),))
        return unknown(source)
    if symbol.kind in _ONE_HOST or symbol.kind.endswith("_ip"):
        return value
    if symbol.kind in ("job_id", "gpu_list"):
        return Value((Symbol(symbol.kind, source, symbol.low, symbol.high, True),))
    if symbol.kind == "nodelist" and re.search(r"cut -c|awk|sed|tr", source):
        return unknown(source)
    return unknown(source)


def _getent(args: list[Value], texts: list[str], stdin: Value | None, lookup: Lookup, source: str) -> Value:
    symbol = args[-1].symbol if args else None
    if symbol and symbol.kind in _ONE_HOST:
        return sym(symbol.kind + "_ip", source)
    return unknown(source)


def _cat(args: list[Value], texts: list[str], stdin: Value | None, lookup: Lookup, source: str) -> Value:
    return _input(args, stdin, lookup)


def _echo(args: list[Value], texts: list[str], stdin: Value | None, lookup: Lookup, source: str) -> Value:
    skip = 0
    while skip < len(texts) and texts[skip] in ("-n", "-e", "-ne", "-en"):
        skip += 1
    value = EMPTY
    for index, part in enumerate(args[skip:]):
        value = value + const(" ") + part if index else part
    return value


def _printf(args: list[Value], texts: list[str], stdin: Value | None, lookup: Lookup, source: str) -> Value:
    form = texts[0] if texts else ""
    if form in ("%s", "%s\\n", "%d", "%d\\n") and len(args) == 2:
        return args[1]
    return const(form.replace("\\n", "")) if len(args) == 1 and "%" not in form else unknown(source)


def _expr(args: list[Value], texts: list[str], stdin: Value | None, lookup: Lookup, source: str) -> Value:
    value = EMPTY
    for part in args:
        value = value + const(" ") + part
    return evaluate(value, lookup, source)


def _bc(args: list[Value], texts: list[str], stdin: Value | None, lookup: Lookup, source: str) -> Value:
    return evaluate(stdin, lookup, source) if stdin is not None else unknown(source)


def _shuf(args: list[Value], texts: list[str], stdin: Value | None, lookup: Lookup, source: str) -> Value:
    match = re.search(r"(?:-i\s*|--input-range[= ])(\d{1,9})-(\d{1,9})", " ".join(texts))
    return sym("random", source, int(match[1]), int(match[2])) if match else unknown(source)


def _seq(args: list[Value], texts: list[str], stdin: Value | None, lookup: Lookup, source: str) -> Value:
    numbers = [a.number for a in args]
    if numbers and None not in numbers:
        given = [n for n in numbers if n is not None]
        first, step, last = (1, 1, given[0]) if len(given) == 1 else (given[0], 1, given[1])
        if len(given) == 3:
            first, step, last = given
        if step and 0 <= (last - first) // step < 64:
            return const("\n".join(str(n) for n in range(first, last + (1 if step > 0 else -1), step)))
    return sym("loop", source)


def _which(args: list[Value], texts: list[str], stdin: Value | None, lookup: Lookup, source: str) -> Value:
    names = [t for t in texts if t and not t.startswith("-")]
    return const(names[-1]) if names else unknown(source)


def _gpus(args: list[Value], texts: list[str], stdin: Value | None, lookup: Lookup, source: str) -> Value:
    return sym("gpu_list", source)


def _nproc(args: list[Value], texts: list[str], stdin: Value | None, lookup: Lookup, source: str) -> Value:
    return sym("cpu_count", source)


def _python(args: list[Value], texts: list[str], stdin: Value | None, lookup: Lookup, source: str) -> Value:
    if _FREE_PORT.search(source):
        return sym("free_port", "python", 1, 65535)
    if "device_count" in source:
        return sym("gpu_count", source)
    return unknown(source)


def _path(args: list[Value], texts: list[str], stdin: Value | None, lookup: Lookup, source: str) -> Value:
    plain = [a for a in _plain(args) if a.text]
    if len(plain) >= 1 and source.startswith("basename"):
        return const((plain[0].text or "").rstrip("/").rpartition("/")[2])
    return unknown(source)


def _nodeset(args: list[Value], texts: list[str], stdin: Value | None, lookup: Lookup, source: str) -> Value:
    return sym("host_list", source) if any(a.has("nodelist") for a in args) and "-e" in texts else unknown(source)


_STARTERS = frozenset("srun ssh mpiexec mpirun".split())
_COMMANDS: dict[str, Callable[[list[Value], list[str], Value | None, Lookup, str], Value]] = {
    "scontrol": _scontrol, "head": _head, "tail": _tail, "sort": _unique, "uniq": _unique, "wc": _lines,
    "awk": _awk, "gawk": _awk, "sed": _filter, "cut": _filter, "tr": _filter, "grep": _filter, "xargs": _filter,
    "paste": _filter, "getent": _getent, "dig": _getent, "host": _getent, "nslookup": _getent, "cat": _cat,
    "echo": _echo, "printf": _printf, "expr": _expr, "bc": _bc, "shuf": _shuf, "seq": _seq,
    "which": _which, "command": _which,
    "nvidia-smi": _gpus, "rocm-smi": _gpus, "amd-smi": _gpus, "xpu-smi": _gpus, "sycl-ls": _gpus, "nproc": _nproc,
    "python": _python, "python3": _python, "basename": _path, "nodeset": _nodeset, "tee": _cat,
}  # fmt: skip
