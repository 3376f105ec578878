"""The site profile: one machine as typed data, version 1.

Every struct refuses unknown keys. Attribute docs are the one source of the JSON Schema's descriptions and
of the profile reference in the docs. Mappings keyed by name (queues, env, sources) merge key by key when a
profile ``extends`` another; everything else is replaced.
"""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

SCHEMA_VERSION = 1

Evidence = Literal["documented", "community", "stated", "unverified", "conflicting"]
CpuList = Annotated[str, Meta(pattern=r"^(\d+(-\d+)?(,\d+(-\d+)?)*)?$")]
PositiveInt = Annotated[int, Meta(ge=1)]
NonNegativeInt = Annotated[int, Meta(ge=0)]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all profile structs."""


class Source(_Strict, frozen=True, kw_only=True):
    """Where a fact comes from."""

    url: str
    """Page or repository that states it."""
    checked: dt.date
    """Day on which the page was read."""
    evidence: Evidence = "documented"
    """documented: the site's own page or repository; community: users' scripts and third-party pages;
    stated: a talk or article; unverified: general knowledge, not checked; conflicting: sources disagree."""
    note: str | None = None


class Scheduler(_Strict, frozen=True, kw_only=True):
    """What queues and starts jobs here."""

    kind: Literal["slurm", "pbs", "local"]
    launcher: Literal["srun", "pals", "mpiexec"]
    """What starts the ranks inside a job: Slurm's srun, PALS' mpiexec under PBS, or an MPI's mpiexec."""
    select: str | None = None
    """PBS: what each chunk of ``-l select=N:`` must be, such as ``system=polaris``; None: ncpus and mpiprocs."""
    source: str | None = None


class Login(_Strict, frozen=True, kw_only=True):
    """Where people log in."""

    hosts: tuple[str, ...] = ()
    proxy_jump: str | None = None
    note: str | None = None
    source: str | None = None


class Detect(_Strict, frozen=True, kw_only=True):
    """Evidence that this machine is the site; one strong piece is enough, weak pieces never are."""

    cluster_names: tuple[str, ...] = ()
    """Strong: Slurm's ClusterName (SLURM_CLUSTER_NAME inside a job)."""
    env: dict[str, str] = {}
    """Strong: environment variable -> regular expression its whole value matches."""
    hostnames: tuple[str, ...] = ()
    """Regular expressions for the whole host name. Strong only with ``hostnames_unique``: nid* exists at
    LUMI, Alps and Perlmutter alike."""
    hostnames_unique: bool = False
    gpu_models: tuple[str, ...] = ()
    """Weak: regular expressions for the GPU's model name."""
    source: str | None = None


class Account(_Strict, frozen=True, kw_only=True):
    """The rule for project accounts."""

    required: bool = False
    pattern: str | None = None
    """Regular expression the whole account name matches."""
    example: str | None = None
    source: str | None = None


class Route(_Strict, frozen=True, kw_only=True):
    """One execution queue behind a routing queue."""

    name: str
    min_nodes: PositiveInt = 1
    max_nodes: PositiveInt
    max_walltime: str


class Queue(_Strict, frozen=True, kw_only=True):
    """A partition, QOS or queue. The first that fits is taken where a request names none."""

    kind: Literal["partition", "qos", "queue"] = "partition"
    min_nodes: PositiveInt = 1
    max_nodes: PositiveInt | None = None
    min_walltime: str | None = None
    max_walltime: str | None = None
    """HH:MM:SS or D-HH:MM:SS."""
    max_running: PositiveInt | None = None
    """Jobs of one user that run at once."""
    max_jobs: PositiveInt | None = None
    """Jobs of one user in any state."""
    routes: tuple[Route, ...] = ()
    """Execution queues it feeds; a job must fit one of them (Polaris prod: it vanishes otherwise)."""
    gpus: bool = True
    """False: its nodes have no GPU; never chosen by itself for a GPU node profile."""
    whole_node: bool = True
    """True: nodes are given whole; False: by resource, so a CPU mask needs a request for whole nodes."""
    by_request: bool = False
    """Only after asking the site; taken only when named."""
    preemptable: bool = False
    """Jobs may be ended any time; taken only when named."""
    with_partition: str | None = None
    """For a QOS: the partition it is combined with."""
    note: str | None = None
    source: str | None = None


class Directive(_Strict, frozen=True, kw_only=True):
    """One more line of the job's header."""

    text: str
    """The option as the scheduler's command takes it, such as ``-l filesystems=home:eagle``."""
    reason: str
    source: str | None = None


class NumaDomain(_Strict, frozen=True, kw_only=True):
    """One NUMA node."""

    id: NonNegativeInt
    cores: CpuList = ""
    """First threads of its cores, as a CPU list; empty for memory-only nodes."""
    memory_gib: PositiveInt | None = None


class SiteGpu(_Strict, frozen=True, kw_only=True):
    """One GPU as the runtime numbers it; on MI250X each GCD is one."""

    numa: NonNegativeInt
    cores: CpuList | None = None
    """The cores nearest to it where the site knows better than the NUMA node (one L3 group a GCD)."""
    bus_id: str | None = None
    nic: str | None = None


class SiteNic(_Strict, frozen=True, kw_only=True):
    """One interface of the high-speed network."""

    name: str
    numa: NonNegativeInt | None = None


class Node(_Strict, frozen=True, kw_only=True):
    """The hardware of one compute node."""

    cpu_model: str
    sockets: PositiveInt = 1
    cores: PositiveInt
    """Physical cores of the node, numbered from 0 without holes."""
    threads_per_core: PositiveInt = 1
    """Thread t of core c is CPU c + t x cores (the kernel's numbering on x86 and Arm servers)."""
    numa: tuple[NumaDomain, ...]
    l3_groups: tuple[CpuList, ...] = ()
    """Cores that share a last-level cache."""
    reserved_cores: CpuList = ""
    """Cores that the site keeps for the system."""
    memory_gib: PositiveInt
    memory_request: str | None = None
    """What to ask for to get a whole node's memory, in the scheduler's spelling; None: nothing is asked."""
    gpus: tuple[SiteGpu, ...] = ()
    """In the order of their indices."""
    gpu_vendor: Literal["amd", "nvidia", "intel"] | None = None
    gpu_model: str | None = None
    gpu_memory_gib: PositiveInt | None = None
    gpu_arch: str | None = None
    """gfx90a, sm_90 and the like: what a build must have been made for."""
    nics: tuple[SiteNic, ...] = ()
    local_scratch: str | None = None
    count: PositiveInt | None = None
    """Nodes of this kind in the machine."""
    note: str | None = None
    source: str | None = None


class Binding(_Strict, frozen=True, kw_only=True):
    """How CPUs are bound and GPUs shown."""

    cpu: Literal["mask_cpu", "map_cpu", "cores", "list", "taskset", "none"]
    """mask_cpu, map_cpu, cores: srun --cpu-bind; list: PALS --cpu-bind list; taskset: by itself."""
    gpu_visible_var: str | None = None
    """Variable that shows a rank its GPUs, set per rank: ROCR_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES."""
    needs_whole_node: bool = True
    """CPU masks name CPUs of the whole node, so the job must own it."""
    source: str | None = None


class Mpi(_Strict, frozen=True, kw_only=True):
    """The MPI and how the launcher talks to it."""

    implementation: str | None = None
    plugin: str | None = None
    """Value of srun --mpi; None with ``plugin_open`` false: the site's default, nothing is passed."""
    plugin_open: bool = False
    """True: the site leaves the choice to the target machine (generic profiles)."""
    alternatives: dict[str, str] = {}
    """Other plugins the site documents -> when to use them."""
    source: str | None = None


class EnvVar(_Strict, frozen=True, kw_only=True):
    """One environment variable of the job; value null means: unset it."""

    value: str | None
    """May use shell variables of the job, such as $SLURM_JOB_ID, in double-quote syntax."""
    reason: str
    """Goes into the script as the line's comment."""
    source: str | None = None


class Fabric(_Strict, frozen=True, kw_only=True):
    """The high-speed network and the variables that the communication libraries need for it."""

    kind: Literal["slingshot-11", "infiniband", "ethernet", "none", "unknown"] = "unknown"
    common: dict[str, EnvVar] = {}
    single_node: dict[str, EnvVar] = {}
    """Only for jobs of one node."""
    multi_node: dict[str, EnvVar] = {}
    """Only for jobs of several nodes."""
    launch_options: tuple[str, ...] = ()
    """Options for the launcher that the variables need, such as --network=disable_rdzv_get."""
    source: str | None = None


class EasyBuild(_Strict, frozen=True, kw_only=True):
    """How users install with EasyBuild here."""

    modules: tuple[str, ...] = ()
    prefix_variable: str = "EASYBUILD_PREFIX"
    prefix: str | None = None
    toolchains: tuple[str, ...] = ()
    note: str | None = None
    source: str | None = None


class Eessi(_Strict, frozen=True, kw_only=True):
    """EESSI here."""

    modules: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    note: str | None = None
    source: str | None = None


class Container(_Strict, frozen=True, kw_only=True):
    """Containers here."""

    runtime: Literal["singularity", "apptainer", "podman", "none"]
    gpu_flag: str | None = None
    """--nv, --rocm or null where the site needs none."""
    binds: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    note: str | None = None
    source: str | None = None


class Software(_Strict, frozen=True, kw_only=True):
    """The software environment of a job."""

    setup: tuple[Directive, ...] = ()
    """Shell lines for every job, in order, each with its reason (``module load ...``)."""
    python: str = "python3"
    """The interpreter after the setup lines."""
    easybuild: EasyBuild | None = None
    eessi: Eessi | None = None
    container: Container | None = None
    source: str | None = None


class Storage(_Strict, frozen=True, kw_only=True):
    """One file system."""

    path: str
    kind: str | None = None
    quota: str | None = None
    purge: str | None = None
    striping: str | None = None
    source: str | None = None


class RankEnv(_Strict, frozen=True, kw_only=True):
    """Variables in which the launcher tells a rank who it is."""

    rank: str
    local_rank: str
    size: str
    local_size: str | None = None


class SiteProfile(_Strict, frozen=True, kw_only=True):
    """One machine."""

    schema: Literal[1]
    """Version of this format."""
    name: str
    description: str
    status: Literal["production", "historic", "generic"] = "production"
    extends: str | None = None
    """Name of the profile this one starts from."""
    sources: dict[str, Source] = {}
    """Pages cited by key in every ``source``."""
    scheduler: Scheduler
    login: Login = Login()
    detect: Detect = Detect()
    account: Account = Account()
    queues: dict[str, Queue] = {}
    directives: tuple[Directive, ...] = ()
    """Header lines that every job here needs."""
    node: Node | None = None
    """None: unknown (generic profiles) or measured live (local)."""
    binding: Binding
    mpi: Mpi = Mpi()
    fabric: Fabric = Fabric()
    env: dict[str, EnvVar] = {}
    """Variables that are not about the fabric: caches, GPU-aware MPI, proxies."""
    software: Software = Software()
    storage: dict[str, Storage] = {}
    rank_env: RankEnv
    internet_on_compute: bool | None = None
    """None: unknown."""
    traps: tuple[str, ...] = ()
    """What has bitten people here."""
