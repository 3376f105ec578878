"""The site profile: one machine as typed data, version 1.

Every struct refuses unknown keys. The meaning of each field stands in ``hpclaunch/fields.yaml``, the only
source of the JSON Schema's descriptions and of the profile reference in the docs. Mappings keyed by name
(queues, env, sources) merge key by key when a profile ``extends`` another; everything else is replaced (see
``hpclaunch.site.merge_profiles``).
"""

import datetime as dt
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from hpclaunch.scheduler import registry


def one_of(names: tuple[str, ...]) -> Meta:
    """Return what makes a text one of these names."""
    return Meta(
        pattern=f"^({'|'.join(names)})$",
        description=f"one of {', '.join(names)}",
        extra={"choices": names},
        extra_json_schema={"enum": list(names)},
    )


Evidence = Literal["measured", "documented", "community", "stated", "unverified", "conflicting"]
WebAddress = Annotated[
    str, Meta(pattern=r"^(https?://|probe:)\S+$", description="an address such as https://...")
]
CpuList = Annotated[
    str, Meta(pattern=r"^(\d+(-\d+)?(,\d+(-\d+)?)*)?$", description="a CPU list in quotes, such as '0-7,16'")
]
SiteName = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="a name of letters, digits, dots and dashes"),
]
BusId = Annotated[
    str, Meta(pattern=r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$", description="as 0000:c1:00.0")
]
SchedulerKind = Annotated[str, one_of(registry.KINDS)]
LauncherName = Annotated[str, one_of(registry.LAUNCHERS)]
QueueKind = Annotated[str, one_of(registry.QUEUE_KINDS)]
PositiveInt = Annotated[int, Meta(ge=1, description="a whole number, at least 1")]
NonNegativeInt = Annotated[int, Meta(ge=0, description="a whole number, at least 0")]
Version = Annotated[
    str, Meta(pattern=r"^\d+(\.\d+){1,2}$", description="a version in quotes, such as '24.05'")
]
CoreCount = Annotated[int, Meta(ge=1, le=65536, description="a whole number from 1 to 65536")]
ThreadCount = Annotated[int, Meta(ge=1, le=16, description="a whole number from 1 to 16")]
ContainerRuntime = Literal["apptainer", "singularity", "shifter", "podman-hpc", "pyxis", "container-engine"]
PositiveFloat = Annotated[float, Meta(gt=0, description="a number above 0")]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all profile structs."""


class JobEasyBuild(_Strict, frozen=True, kw_only=True):
    """Software that was installed with EasyBuild."""

    prefix: str | None = None
    load: tuple[str, ...] = ()


class JobEessi(_Strict, frozen=True, kw_only=True):
    """The European Environment for Scientific Software Installations, over CernVM-FS."""

    version: str
    init: Literal["module", "shell", "container"] = "module"
    cpu_target: str | None = None
    accelerator: str | None = None
    load: tuple[str, ...] = ()
    extend: str | None = None
    script: str | None = None
    cache: str | None = None


class JobContainer(_Strict, frozen=True, kw_only=True):
    """A container around the command of each rank."""

    image: str
    runtime: ContainerRuntime | None = None
    binds: tuple[str, ...] = ()
    gpu: bool | None = None
    venv: str | None = None
    activate: str | None = None
    site_modules: bool = True


# Paths may hold shell variables ($SCRATCH) of the job. The order of keys in the file does not matter: the
# script has the lines in the one order that works: EESSI, EasyBuild's prefix and modules, modules, conda,
# venv. The command itself runs inside the container.
class Environment(_Strict, frozen=True, kw_only=True):
    """The software environment of a job or a profile."""

    site_setup: bool = True
    module_use: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    easybuild: JobEasyBuild | None = None
    eessi: JobEessi | None = None
    conda: str | None = None
    venv: str | None = None
    container: JobContainer | None = None


class _Cited(_Strict, frozen=True, kw_only=True):
    """Base of those whose facts come from one page."""

    source: str | None = None


class Source(_Strict, frozen=True, kw_only=True):
    """Where a fact comes from."""

    url: WebAddress
    checked: dt.date
    evidence: Evidence = "documented"
    note: str | None = None


class Scheduler(_Cited, frozen=True, kw_only=True):
    """The program that queues and starts jobs here."""

    kind: SchedulerKind
    launcher: LauncherName
    select: str | None = None
    version: Version | None = None
    gpu_request: Literal["gpus-per-node", "gres", "none"] = "gpus-per-node"
    version_source: str | None = None


class Login(_Cited, frozen=True, kw_only=True):
    """Where users log in."""

    hosts: tuple[str, ...] = ()
    proxy_jump: str | None = None
    note: str | None = None


class Detect(_Cited, frozen=True, kw_only=True):
    """Evidence that this machine is the site; one strong piece is enough, weak pieces never are."""

    cluster_names: tuple[str, ...] = ()
    env: dict[str, str] = {}
    hostnames: tuple[str, ...] = ()
    hostnames_unique: tuple[str, ...] = ()
    gpu_models: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    modules_source: str | None = None


class Account(_Cited, frozen=True, kw_only=True):
    """The rule for project accounts."""

    required: bool = False
    pattern: str | None = None
    example: str | None = None
    option: Literal["-A", "-P"] = "-A"
    in_script: bool = True


class Route(_Strict, frozen=True, kw_only=True):
    """One execution queue behind a routing queue, or one range of nodes with its own walltime."""

    name: str
    min_nodes: PositiveInt = 1
    max_nodes: PositiveInt
    max_walltime: str


class Queue(_Cited, frozen=True, kw_only=True):
    """A partition, QOS or queue. For a job that names none, the first one that fits is used."""

    kind: QueueKind = "partition"
    min_nodes: PositiveInt = 1
    max_nodes: PositiveInt | None = None
    min_walltime: str | None = None
    max_walltime: str | None = None
    max_node_minutes: PositiveInt | None = None
    max_running: PositiveInt | None = None
    max_jobs: PositiveInt | None = None
    routes: tuple[Route, ...] = ()
    gpus: bool = True
    whole_node: bool = True
    by_request: bool = False
    preemptable: bool = False
    with_partition: str | None = None
    automatic: bool | None = None
    note: str | None = None


class Directive(_Cited, frozen=True, kw_only=True):
    """One additional line of the job: an option of its header, or a shell line of its setup."""

    text: str
    reason: str
    required: bool = False
    replaced_by_images: bool = False


class NumaDomain(_Strict, frozen=True, kw_only=True):
    """One NUMA node."""

    id: NonNegativeInt
    cores: CpuList = ""
    memory_gib: PositiveInt | None = None


class SiteGpu(_Strict, frozen=True, kw_only=True):
    """One GPU as the runtime numbers it; on MI250X each GCD is one."""

    numa: NonNegativeInt | None = None
    cores: CpuList | None = None
    bus_id: BusId | None = None
    nic: str | None = None


class SiteNic(_Strict, frozen=True, kw_only=True):
    """One interface of the high-speed network."""

    name: str
    numa: NonNegativeInt | None = None


_CPUS = {"Grace": "aarch64", "POWER": "ppc64le"}


class Node(_Cited, frozen=True, kw_only=True):
    """The hardware of one compute node."""

    cpu_model: str
    sockets: PositiveInt = 1
    cores: CoreCount
    threads_per_core: ThreadCount = 1
    numbering: Literal["spread", "adjacent"] = "spread"
    numa: tuple[NumaDomain, ...] = ()
    l3_groups: tuple[CpuList, ...] = ()
    reserved_cores: CpuList = ""
    memory_gib: PositiveInt | None = None
    memory_request: str | None = None
    gpus: tuple[SiteGpu, ...] = ()
    gpu_vendor: Literal["amd", "nvidia", "intel"] | None = None
    gpu_model: str | None = None
    gpu_type: str | None = None
    gpu_slices: bool = False
    gpu_memory_gib: PositiveInt | None = None
    gpu_arch: str | None = None
    nics: tuple[SiteNic, ...] = ()
    local_scratch: str | None = None
    count: PositiveInt | None = None
    note: str | None = None

    @property
    def cpu_arch(self) -> str | None:
        """The kind of its processors, as ``uname -m`` names it; None: x86_64, or it is not known."""
        return next((name for word, name in _CPUS.items() if word in self.cpu_model), None)


class FrameworkCores(_Cited, frozen=True, kw_only=True):
    """The cores that the site documents for the ranks of one framework."""

    cores: tuple[CpuList, ...]
    reason: str


class Threads(_Cited, frozen=True, kw_only=True):
    """OMP_NUM_THREADS for the ranks of one framework."""

    value: PositiveInt
    reason: str


class Binding(_Cited, frozen=True, kw_only=True):
    """How CPUs are bound and GPUs shown."""

    cpu: Literal["mask_cpu", "map_cpu", "cores", "list", "taskset", "at_start", "none"]
    confined: bool = False
    gpu_visible_var: str | None = None
    needs_whole_node: bool = True
    cores_for: dict[str, FrameworkCores] = {}
    threads_for: dict[str, Threads] = {}


class KindBinding(_Strict, frozen=True, kw_only=True):
    """The part of the binding that follows from the hardware."""

    gpu_visible_var: str | None = None


class Mpi(_Cited, frozen=True, kw_only=True):
    """The MPI and how the launcher communicates with it."""

    implementation: str | None = None
    plugin: str | None = None
    plugin_open: bool = False
    alternatives: dict[str, str] = {}


class EnvVar(_Cited, frozen=True, kw_only=True):
    """One environment variable of the job; value null means: unset it."""

    value: str | None
    reason: str
    outside_containers: bool = False


class Billing(_Cited, frozen=True, kw_only=True):
    """The site's charge to a project for a job of whole nodes."""

    unit: str
    per_node_hour: PositiveFloat
    note: str | None = None


class Link(_Cited, frozen=True, kw_only=True):
    """How fast one link of the machine is by its design; measurements are in fabric.allreduce."""

    gb_s: PositiveFloat
    per_node: PositiveInt | None = None
    kind: str | None = None
    note: str | None = None


class Links(_Strict, frozen=True, kw_only=True):
    """The links of a node, each with its speed."""

    nic: Link | None = None
    gpu_gpu: Link | None = None
    cpu_gpu: Link | None = None


class Network(_Cited, frozen=True, kw_only=True):
    """How the nodes are connected."""

    layout: Literal["dragonfly", "dragonfly+", "fat-tree"]
    groups: PositiveInt | None = None
    nodes_per_group: PositiveInt | None = None
    planes: PositiveInt | None = None
    taper: PositiveFloat | None = None
    note: str | None = None


class AllreduceFigure(_Cited, frozen=True, kw_only=True):
    """A bandwidth that was measured and published, to compare your own measurements with."""

    nodes: PositiveInt
    gpus: PositiveInt
    message_bytes: PositiveInt
    bus_gb_s: PositiveFloat
    bus_gb_s_without_plugin: PositiveFloat | None = None


class FabricPlugin(_Cited, frozen=True, kw_only=True):
    """The plugin without which NCCL or RCCL sends by TCP; a job of several nodes without it gets a note."""

    name: str
    install: str
    directive: str | None = None
    in_containers: bool = False


class Fabric(_Cited, frozen=True, kw_only=True):
    """The high-speed network and the variables that the communication libraries need for it."""

    kind: Literal["slingshot-11", "infiniband", "aries", "ethernet", "none", "unknown"] = "unknown"
    common: dict[str, EnvVar] = {}
    single_node: dict[str, EnvVar] = {}
    multi_node: dict[str, EnvVar] = {}
    network: Network | None = None
    launch_options: tuple[str, ...] = ()
    name_suffix: str | None = None
    plugin: FabricPlugin | None = None
    allreduce: tuple[AllreduceFigure, ...] = ()


class EasyBuild(_Cited, frozen=True, kw_only=True):
    """How users install with EasyBuild at the site."""

    modules: tuple[str, ...] = ()
    prefix_variable: str = "EASYBUILD_PREFIX"
    prefix: str | None = None
    toolchains: tuple[str, ...] = ()
    note: str | None = None


class Eessi(_Cited, frozen=True, kw_only=True):
    """EESSI at the site."""

    modules: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    note: str | None = None


class Container(_Cited, frozen=True, kw_only=True):
    """Containers at the site."""

    runtime: ContainerRuntime | Literal["none"]
    options: tuple[str, ...] = ()
    gpu_flag: str | None = None
    binds: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    binds_storage: bool = False
    cotainr: str | None = None
    annotations: dict[str, str] = {}
    images: tuple[str, ...] = ()
    fabric_in_images: bool = False
    note: str | None = None


class Offer(_Cited, frozen=True, kw_only=True):
    """Software that the site provides or documents how to install."""

    environment: Environment = Environment()
    install: tuple[str, ...] = ()
    directives: tuple[str, ...] = ()
    env: dict[str, str] = {}
    mpi: str | None = None
    enter: str | None = None
    versions: dict[str, str] = {}
    since: dt.date | None = None
    lacks: dict[str, str] = {}
    note: str | None = None

    @property
    def needs_install(self) -> bool:
        """Whether it is used where it was installed before, in ``$PREFIX``."""
        return "$PREFIX" in repr((self.environment, self.env, self.directives))

    @property
    def in_setup(self) -> bool:
        """Whether each job has what it holds, by the site's setup."""
        return self.environment == Environment() and not self.directives


class NoOffer(_Cited, frozen=True, kw_only=True):
    """Software that the site documents not to have, or that was searched for in vain."""

    why: str


class Software(_Cited, frozen=True, kw_only=True):
    """The software environment of a job."""

    setup: tuple[Directive, ...] = ()
    python: str = "python3"
    easybuild: EasyBuild | None = None
    eessi: Eessi | None = None
    container: Container | None = None
    other_containers: tuple[Container, ...] = ()
    wrapper: str | None = None
    no_venv: str | None = None
    offers: dict[str, Offer] = {}
    lacks: dict[str, NoOffer] = {}
    fallbacks: dict[str, tuple[str, ...]] = {}
    unversioned: dict[str, str] = {}
    prefix: str | None = None
    note: str | None = None


class Storage(_Cited, frozen=True, kw_only=True):
    """One file system."""

    path: str
    job_folder: str | None = None
    kind: str | None = None
    quota: str | None = None
    purge: str | None = None
    striping: str | None = None


class Retired(_Cited, frozen=True, kw_only=True):
    """A machine that is switched off: its scripts are still read and planned, nothing is submitted."""

    since: dt.date | None = None
    successor: str | None = None


class ChangeLog(_Strict, frozen=True, kw_only=True):
    """A page on which the site announces changes of its software."""

    source: str
    last_entry: dt.date


class SiteProfile(_Strict, frozen=True, kw_only=True):
    """One machine."""

    schema: Literal[1]
    name: SiteName
    description: str
    status: Literal["production", "historic", "generic"] = "production"
    retired: Retired | None = None
    extends: SiteName | None = None
    part_of: SiteName | None = None
    node_kind: SiteName | None = None
    sources: dict[str, Source] = {}
    changes: tuple[ChangeLog, ...] = ()
    scheduler: Scheduler
    login: Login = Login()
    detect: Detect = Detect()
    account: Account = Account()
    billing: Billing | None = None
    queues: dict[str, Queue] = {}
    directives: tuple[Directive, ...] = ()
    node: Node | None = None
    links: Links = Links()
    binding: Binding
    mpi: Mpi = Mpi()
    fabric: Fabric = Fabric()
    env: dict[str, EnvVar] = {}
    software: Software = Software()
    environment: Environment | None = None
    storage: dict[str, Storage] = {}
    internet_on_login: bool | None = None
    internet_on_compute: bool | None = None
    traps: tuple[str, ...] = ()

    @property
    def base(self) -> str | None:
        """Name of the profile that this one starts from."""
        return self.part_of or self.extends


class NodeKind(_Strict, frozen=True, kw_only=True):
    """The hardware of one kind of compute node, without a site."""

    schema: Literal[1]
    node_kind: SiteName
    description: str
    sources: dict[str, Source]
    node: Node
    links: Links = Links()
    binding: KindBinding = KindBinding()
