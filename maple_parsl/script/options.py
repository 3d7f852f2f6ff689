"""Options of every launcher: which take a value, and one name for the same thing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from maple_parsl.script import slurm_options as slurm
from maple_parsl.script.model import Arg, Context, Option
from maple_parsl.script.values import EMPTY, Symbol, Value, join


@dataclass(frozen=True)
class Grammar:
    """How a launcher's command line is read.

    Attributes:
        values: flags with a value -> normalised name. switches: flags without.
        pairs: flags with two values. single_dash: long options may have one dash. attached: ``-n4``.
        any_dash: ``-`` and ``_`` are the same in long names (argparse scripts of torch).
        guess: an unknown long option followed by a plain word takes it.
    """

    values: dict[str, str]
    switches: frozenset[str]
    pairs: frozenset[str] = frozenset()
    attached: bool = False
    any_dash: bool = False
    guess: bool = False


def _table(text: str) -> dict[str, str]:
    """``name: flag flag`` per line -> flag to name."""
    found = {}
    for row in text.strip().split("\n"):
        name, _, flags = row.strip().partition(":")
        for flag in flags.split():
            found[flag] = name.strip()
    return found


_SRUN = {f"--{n}": n.replace("-", "_") for n in slurm.VALUES}
_SRUN |= {f"--{a}": n.replace("-", "_") for a, n in slurm.ALIASES.items()}
_SRUN |= {f"-{s}": n.replace("-", "_") for s, n in slurm.SHORT.items() if n not in slurm.SWITCHES}
_SRUN_SWITCHES = frozenset(f"--{n}" for n in slurm.SWITCHES) | {
    f"-{s}" for s, n in slurm.SHORT.items() if n in slurm.SWITCHES
}
_MPI = _table("""
    ntasks: -n -np --np --n -c --ntasks
    ntasks_per_node: -ppn --ppn -N -npernode --npernode -perhost --perhost -ranks-per-node --ntasks-per-node
    cpus_per_task: -d --depth -depth --cpus-per-proc -cpus-per-proc --cpus-per-rank
    hostfile: -hostfile --hostfile -machinefile --machinefile -f --f --default-hostfile
    hosts: -host --host -hosts --hosts -H --hostlist
    cpu_bind: --cpu-bind -cpu-bind --cc -cc
    bind_to: --bind-to -bind-to
    map_by: --map-by -map-by
    rank_by: --rank-by
    mem_bind: --mem-bind
    gpu_bind: --gpu-bind -gpu-bind
    pass: -x --x
    genvlist: -genvlist --genvlist -envlist --envlist
    wdir: -wdir --wdir -wd --wd
    launcher: -launcher --launcher -bootstrap --bootstrap
    iface: -iface -rmk
    cpu_list: --cpu-list --cpu-set
    output: --output-filename -outfile-pattern --outfile -o --output
    timeout: --timeout
    prefix: --prefix
    per_socket: -npersocket --npersocket
    pmi: --pmi -pmi --mpi
    rank_order: --rankfile -rf
""")
_MPI_SWITCHES = frozenset(
    "-genvall --genvall -envall --envall --no-vni --oversubscribe -oversubscribe --allow-run-as-root -l --label -v"
    " --verbose -V --report-bindings --line-buffer --exclusive --no-transfer --noinherit -print-rank-map"
    " --nooversubscribe -bynode --bynode -bycore --bind-to-core --bind-to-none -bind-to-none --tag-output"
    " -tag-output -q --quiet --display-map --use-hwthread-cpus -prepend-rank --abort-on-failure --bind-to-socket -s"
    " --display-allocation --transfer -rr --do-not-launch -info".split()
)
_MPI_PAIRS = frozenset("-mca --mca -gmca --gmca -genv --genv -env --env --pmixmca".split())
_TORCH = _table("""
    nnodes: --nnodes
    nproc_per_node: --nproc_per_node
    node_rank: --node_rank
    rdzv_backend: --rdzv_backend
    rdzv_endpoint: --rdzv_endpoint
    rdzv_id: --rdzv_id
    rdzv_conf: --rdzv_conf
    max_restarts: --max_restarts
    monitor_interval: --monitor_interval
    start_method: --start_method
    role: --role
    log_dir: --log_dir
    redirects: -r --redirects
    tee: -t --tee
    local_ranks_filter: --local_ranks_filter
    local_addr: --local_addr
    master_addr: --master_addr
    master_port: --master_port
    module_name: --module_name
    event_log_handler: --event_log_handler
    logs_specs: --logs_specs
    numa_binding: --numa_binding
    signals_to_handle: --signals_to_handle
    virtual_local_rank_value: --virtual_local_rank_value
""")
_TORCH_SWITCHES = frozenset("--standalone --use_env --no_python -m --module --run_path --virtual_local_rank".split())
_ACCELERATE = _table("""
    config_file: --config_file
    num_processes: --num_processes
    nnodes: --num_machines
    node_rank: --machine_rank
    master_addr: --main_process_ip
    master_port: --main_process_port
    rdzv_backend: --rdzv_backend
    rdzv_conf: --rdzv_conf
    mixed_precision: --mixed_precision
    dynamo_backend: --dynamo_backend
    num_cpu_threads_per_process: --num_cpu_threads_per_process
    gpu_ids: --gpu_ids
    same_network: --same_network
    max_restarts: --max_restarts
    monitor_interval: --monitor_interval
    role: --role
    deepspeed_config_file: --deepspeed_config_file
    deepspeed_hostfile: --deepspeed_hostfile
    deepspeed_multinode_launcher: --deepspeed_multinode_launcher
    deepspeed_exclusion_filter: --deepspeed_exclusion_filter
    deepspeed_inclusion_filter: --deepspeed_inclusion_filter
    zero_stage: --zero_stage
    gradient_accumulation_steps: --gradient_accumulation_steps
    gradient_clipping: --gradient_clipping
    offload_optimizer_device: --offload_optimizer_device
    offload_param_device: --offload_param_device
    mpirun_hostfile: --mpirun_hostfile
    mpirun_ccl: --mpirun_ccl
    enable_cpu_affinity: --enable_cpu_affinity
    tee: --tee
    log_dir: --log_dir
""")
_ACCELERATE_SWITCHES = frozenset(
    "--multi_gpu --cpu --mps --tpu --use_deepspeed --use_fsdp --use_megatron_lm --use_xpu --quiet -q -m --module"
    " --no_python --debug --use_mps_device --aws_access_key_id --ipex --same_network --use_tp".split()
)
_DEEPSPEED = _table("""
    hostfile: -H --hostfile
    include: -i --include
    exclude: -e --exclude
    nnodes: --num_nodes
    nproc_per_node: --num_gpus --num_accelerators
    master_addr: --master_addr
    master_port: --master_port
    launcher: --launcher
    launcher_args: --launcher_args
    node_rank: --node_rank
    ssh_port: --ssh_port
    autotuning: --autotuning
    min_elastic_nodes: --min_elastic_nodes
    max_elastic_nodes: --max_elastic_nodes
    bind_core_list: --bind_core_list
    save_pid: --save_pid_path
    venv_script: --venv_script
    enable_each_rank_log: --enable_each_rank_log
""")
_DEEPSPEED_SWITCHES = frozenset(
    "--module --no_python --no_local_rank --no_ssh --no_ssh_check --force_multi --save_pid --elastic_training"
    " --bind_cores_to_rank".split()
)
_COMPOSER = _table("""
    nproc_per_node: -n --nproc
    world_size: --world_size
    base_rank: --base_rank
    node_rank: --node_rank
    master_addr: --master_addr
    master_port: --master_port
    stdout: --stdout
    stderr: --stderr
""")
_HOROVOD = _table("""
    ntasks: -np --num-proc
    hosts: -H --hosts
    hostfile: -hostfile --hostfile
    ssh_port: -p --ssh-port
    min_np: --min-np
    max_np: --max-np
    network_interface: --network-interface --network-interfaces
    mpi_args: --mpi-args
    start_timeout: --start-timeout
    slots: --slots-per-host
    discovery: --host-discovery-script
    log_level: --log-level
    output: --output-filename
""")
_LIGHTNING = _table("""
    nnodes: --num-nodes
    nproc_per_node: --devices
    strategy: --strategy
    accelerator: --accelerator
    node_rank: --node-rank
    master_addr: --main-address
    master_port: --main-port
    precision: --precision
""")
_RAY = _table("""
    master_addr: --address
    master_port: --port
    gpus: --num-gpus
    cpus_per_task: --num-cpus
    node_addr: --node-ip-address
    redis_password: --redis-password
    temp_dir: --temp-dir
    dashboard_host: --dashboard-host
    dashboard_port: --dashboard-port
    resources: --resources
    object_store_memory: --object-store-memory
    min_worker_port: --min-worker-port
    max_worker_port: --max-worker-port
""")
_JSRUN = _table("""
    resource_sets: -n --nrs
    ntasks: -p --np
    tasks_per_rs: -a --tasks_per_rs
    cpus_per_rs: -c --cpu_per_rs
    gpus_per_rs: -g --gpu_per_rs
    rs_per_host: -r --rs_per_host
    distribution: -d --launch_distribution
    latency: -l --latency_priority
    bind: -b --bind
    env: -E --env
    smpi: -M --smpiargs
    hostfile: -U --use_resource
    erf: --erf_input
    stdio: --stdio_mode -o --stdio_stdout -k --stdio_stderr -e
""")
_APRUN = _table("""
    ntasks: -n
    ntasks_per_node: -N
    cpus_per_task: -d
    cpu_bind: -cc
    hyperthreads: -j
    env: -e
    hosts: -L
    mem: -m
    per_numa: -S
""")
_IBRUN = _table("""
    ntasks: -n -np
    offset: -o
""")
_SSH = _table("""
    login: -l
    port: -p
    option: -o
    identity: -i
    config: -F
    jump: -J
    bind: -b
    cipher: -c
""")
_PDSH = _table("""
    hosts: -w
    exclude: -x
    fanout: -f
    rcmd: -R
    user: -l
    timeout: -t -u
    group: -g
    tasks: -n
""")

GRAMMARS: dict[str, Grammar] = {
    "srun": Grammar(_SRUN, _SRUN_SWITCHES, attached=True),
    "mpi": Grammar(_MPI, _MPI_SWITCHES, _MPI_PAIRS),
    "torchrun": Grammar(_TORCH, _TORCH_SWITCHES, any_dash=True),
    "accelerate": Grammar(_ACCELERATE, _ACCELERATE_SWITCHES, any_dash=True, guess=True),
    "deepspeed": Grammar(_DEEPSPEED, _DEEPSPEED_SWITCHES, any_dash=True),
    "composer": Grammar(_COMPOSER, frozenset("-v --verbose -m --module_mode -c --command_mode".split()), any_dash=True),
    "horovodrun": Grammar(_HOROVOD, frozenset("--gloo --mpi --jsrun --verbose --disable-cache --tcp".split())),
    "lightning": Grammar(_LIGHTNING, frozenset(), guess=True),
    "ray": Grammar(_RAY, frozenset("--head --block --disable-usage-stats".split())),
    "jsrun": Grammar(_JSRUN, frozenset("-i -I".split()), attached=True),
    "aprun": Grammar(_APRUN, frozenset("-r -q -b -B".split())),
    "ibrun": Grammar(_IBRUN, frozenset("-v --".split())),
    "ssh": Grammar(_SSH, frozenset(f"-{c}" for c in "tTnNfqvxXyYACkK46aM") | {"-tt"}, attached=True),
    "pdsh": Grammar(_PDSH, frozenset("-S -N -d -b -q -a -u -c -s".split()), attached=True),
}


def parse(grammar: Grammar, words: tuple[Arg, ...], context: Context) -> tuple[tuple[Option, ...], int]:
    """Options at the front of a launcher's arguments, and how many words they are."""
    found: list[Option] = []
    at = 0
    while at < len(words):
        word = words[at]
        head = word.value.parts[0] if word.value.parts else ""
        if not isinstance(head, str) or not head.startswith("-") or head == "-":
            if head == ":" and len(word.value.parts) == 1:
                break
            if not word.quote and (not word.value.parts or _perhaps_options(head)):
                at += 1
                continue
            break
        if head == "--":
            at += 1
            break
        name, flag, value, used, place = _one(grammar, words, at, head)
        text = " ".join(w.text for w in words[at : at + 1 + used])
        found.append(Option(name, flag, value, text, word.place, context, place.place))
        at += 1 + used
    return tuple(found), at


_OPTIONS_NAME = re.compile(r"(?:ARGS?|ARGUMENTS|OPTS?|OPTIONS?|FLAGS?|EXTRAS?|PARAMS)\Z", re.I)


def _perhaps_options(head: object) -> bool:
    """A variable that holds options, or nothing: ``srun ${RESUME} torchrun``, ``srun $SRUN_ARGS -l python``.

    What a variable set outside the script holds is told by its name.
    """
    if not isinstance(head, Symbol):
        return False
    if head.kind in ("environment", "unset", "positional"):
        return _OPTIONS_NAME.search(head.detail) is not None
    if head.kind != "choice":
        return False
    texts = [option.text for option in head.options]
    return "" in texts and all(text == "" or (text and text.startswith("--")) for text in texts)


def _one(grammar: Grammar, words: tuple[Arg, ...], at: int, head: str) -> tuple[str, str, Value, int, Arg]:
    word = words[at]
    flag, mark, tail = head.partition("=")
    after = Value((*((tail,) if tail else ()), *word.value.parts[1:])) if mark else None
    key = "--" + flag[2:].replace("-", "_") if grammar.any_dash and flag.startswith("--") else flag
    whole = len(word.value.parts) == 1 or mark
    if whole and key in grammar.pairs:
        following = words[at + 1 : at + 3]
        pair = key.lstrip("-")
        if following and ("=" in str(following[0].value) and pair in ("genv", "env")):
            return pair, flag, following[0].value, 1, following[0]
        value = _spaced(w.value for w in following)
        return pair, flag, value, len(following), following[0] if following else word
    if whole and key in grammar.values:
        name = grammar.values[key]
        if after is not None:
            return name, flag, after, 0, word
        if at + 1 < len(words):
            return name, flag, words[at + 1].value, 1, words[at + 1]
        return name, flag, EMPTY, 0, word
    if whole and key in grammar.switches:
        return key.lstrip("-").replace("-", "_"), flag, after if after is not None else EMPTY, 0, word
    if grammar.attached and re.match(r"-[A-Za-z]", head) and not head.startswith("--"):
        short = head[:2]
        rest = join((head[2:].removeprefix("="), *word.value.parts[1:]))
        if short in grammar.values:
            return grammar.values[short], short, rest, 0, word
        return short.lstrip("-"), head, rest, 0, word
    if flag.startswith("--") and grammar.values is _SRUN:
        name = slurm.long_name(flag[2:])
        if "--" + name in _SRUN and after is None and at + 1 < len(words):
            return name.replace("-", "_"), flag, words[at + 1].value, 1, words[at + 1]
    name = key.lstrip("-").replace("-", "_")
    if after is not None:
        return name, flag, after, 0, word
    if grammar.any_dash and (match := _abbreviated(grammar, key)):
        if match in grammar.values and at + 1 < len(words):
            return grammar.values[match], flag, words[at + 1].value, 1, words[at + 1]
        return match.lstrip("-"), flag, EMPTY, 0, word
    if grammar.guess and flag.startswith("--") and at + 2 < len(words):
        text = words[at + 1].value.text or "x"
        if not text.startswith("-") and not text.endswith((".py", ".sh")):
            return name, flag, words[at + 1].value, 1, words[at + 1]
    return name, flag, EMPTY, 0, word


def _abbreviated(grammar: Grammar, key: str) -> str | None:
    starts = [f for f in (*grammar.values, *grammar.switches) if len(key) > 4 and f.startswith(key)]
    return starts[0] if len(starts) == 1 else None


def _spaced(values: Iterable[Value]) -> Value:
    result = EMPTY
    for index, value in enumerate(values):
        result = result + Value((" ",)) + value if index else value
    return result
