"""The site profile: one machine as typed data, version 1.

Every struct refuses unknown keys. Attribute docs are the only source of the JSON Schema's descriptions and
of the profile reference in the docs. Mappings keyed by name (queues, env, sources) merge key by key when a
profile ``extends`` another; everything else is replaced (see ``hpclaunch.site.merge_profiles``).
"""

import datetime as dt
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from hpclaunch.scheduler import registry
from hpclaunch.site.job_environment import ContainerRuntime, Environment


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
PositiveFloat = Annotated[float, Meta(gt=0, description="a number above 0")]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all profile structs."""


class _Cited(_Strict, frozen=True, kw_only=True):
    """Base of those whose facts come from one page."""

    source: str | None = None
    """Key in ``sources`` of the page that states this."""


class Source(_Strict, frozen=True, kw_only=True):
    """Where a fact comes from."""

    url: WebAddress
    """Page or repository that states it."""
    checked: dt.date
    """Day on which the page was read."""
    evidence: Evidence = "documented"
    """measured: by hpclaunch sites probe; ``url`` is then ``probe:FILE``, and ``note`` has the version;
    documented: the site's own page or repository; community: users' scripts and third-party pages;
    stated: a talk or article; unverified: general knowledge, not checked; conflicting: sources disagree."""
    note: str | None = None
    """The exact words of the page, or what is doubtful about it."""


class Scheduler(_Cited, frozen=True, kw_only=True):
    """The program that queues and starts jobs here."""

    kind: SchedulerKind
    """The scheduler; local: none, jobs run on this machine."""
    launcher: LauncherName
    """Program that starts the ranks inside a job: a launcher of that scheduler, or the MPI's own mpiexec."""
    select: str | None = None
    """PBS: what follows the node count in ``-l select=``, such as ``system=polaris``; None: its ncpus;
    empty: nothing. ``TASKS`` in it stands for the ranks of a node."""
    version: Version | None = None
    """Version of the scheduler; None: not known, so what only some versions do is at most a note of lint."""
    gpu_request: Literal["gpus-per-node", "gres", "none"] = "gpus-per-node"
    """Slurm: what requests GPUs; gpus-per-node needs select/cons_tres; none: a job has all of its nodes."""
    version_source: str | None = None
    """Key in ``sources`` of the page that states the version."""


class Login(_Cited, frozen=True, kw_only=True):
    """Where users log in."""

    hosts: tuple[str, ...] = ()
    """Host names to ssh to."""
    proxy_jump: str | None = None
    """Jump host that ssh must use."""
    note: str | None = None
    """Further facts: one-time codes, keys."""


class Detect(_Cited, frozen=True, kw_only=True):
    """Evidence that this machine is the site; one strong piece is enough, weak pieces never are."""

    cluster_names: tuple[str, ...] = ()
    """Strong: Slurm's ClusterName (SLURM_CLUSTER_NAME inside a job)."""
    env: dict[str, str] = {}
    """Strong: environment variable -> regular expression that its whole value matches."""
    hostnames: tuple[str, ...] = ()
    """Weak: regular expressions for the whole host name. nid* exists at LUMI, Alps and Perlmutter alike."""
    hostnames_unique: tuple[str, ...] = ()
    """Strong: regular expressions for whole host names that no other site has."""
    gpu_models: tuple[str, ...] = ()
    """Weak: regular expressions for the GPU's model name."""
    modules: tuple[str, ...] = ()
    """Regular expressions for whole names of modules that no other site has. A batch script that loads one
    and names queues of this site is for this site: ``hpclaunch lint`` and ``port`` know it by them."""
    modules_source: str | None = None
    """Key in ``sources`` of the page that states the modules."""


class Account(_Cited, frozen=True, kw_only=True):
    """The rule for project accounts."""

    required: bool = False
    """The scheduler refuses a job that names no account."""
    pattern: str | None = None
    """Regular expression that the whole account name matches."""
    example: str | None = None
    """An example of an account name, for messages."""
    option: Literal["-A", "-P"] = "-A"
    """PBS: the option that names it."""
    in_script: bool = True
    """False: the site takes it from the command line that submits only, so the script does not name it."""


class Route(_Strict, frozen=True, kw_only=True):
    """One execution queue behind a routing queue, or one range of nodes with its own walltime."""

    name: str
    """Its name."""
    min_nodes: PositiveInt = 1
    """Fewest nodes of a job."""
    max_nodes: PositiveInt
    """Most nodes of a job."""
    max_walltime: str
    """HH:MM:SS or D-HH:MM:SS."""


class Queue(_Cited, frozen=True, kw_only=True):
    """A partition, QOS or queue. For a job that names none, the first one that fits is used."""

    kind: QueueKind = "partition"
    """partition or qos: Slurm's; queue: that of any other scheduler; resource: for Grid Engine, a resource of
    ``-l`` that counts nodes."""
    min_nodes: PositiveInt = 1
    """Fewest nodes of a job."""
    max_nodes: PositiveInt | None = None
    """Most nodes of a job; None: no limit is documented."""
    min_walltime: str | None = None
    """Shortest walltime of a job, in the format of ``max_walltime``."""
    max_walltime: str | None = None
    """Longest walltime of a job: HH:MM:SS or D-HH:MM:SS."""
    max_node_minutes: PositiveInt | None = None
    """Most nodes x minutes of a job (Clariden's debug: 90)."""
    max_running: PositiveInt | None = None
    """Most jobs of one user that run at the same time."""
    max_jobs: PositiveInt | None = None
    """Most jobs of one user in any state."""
    routes: tuple[Route, ...] = ()
    """Execution queues that it feeds, or ranges of nodes with a walltime each (batch on Frontier); a job must
    fit one of them (prod on Polaris: other jobs disappear)."""
    gpus: bool = True
    """False: its nodes have no GPU; never chosen automatically where the profile's node has GPUs."""
    whole_node: bool = True
    """True: jobs get whole nodes; False: parts of nodes, so a job with CPU masks must request whole nodes."""
    by_request: bool = False
    """The site must first allow its use; used only for a job that names it."""
    preemptable: bool = False
    """The site may end its jobs at any time; used only for a job that names it."""
    with_partition: str | None = None
    """For a QOS: the partition it is combined with; None: the site sets it, none is named."""
    automatic: bool | None = None
    """Whether a job that names no queue may get it. None: yes for a partition or queue, no for a QOS (true
    where a site knows nothing but QOS, as Perlmutter)."""
    note: str | None = None
    """Further facts: limits of a project, what the queue is for."""


class Directive(_Cited, frozen=True, kw_only=True):
    """One additional line of the job: an option of its header, or a shell line of its setup."""

    text: str
    """The option as the scheduler's command takes it (``-l filesystems=home:eagle``), or the shell line."""
    reason: str
    """Written into the script as the comment of the line."""
    required: bool = False
    """True: the site refuses a job without this option; False: it only recommends it."""
    replaced_by_images: bool = False
    """True: a job with a container leaves the line out, since its image brings what the line loads."""


class NumaDomain(_Strict, frozen=True, kw_only=True):
    """One NUMA node."""

    id: NonNegativeInt
    """Its number in the kernel."""
    cores: CpuList = ""
    """Its cores, as a CPU list; empty for memory-only nodes (GPU memory on GH200)."""
    memory_gib: PositiveInt | None = None
    """Its memory."""


class SiteGpu(_Strict, frozen=True, kw_only=True):
    """One GPU as the runtime numbers it; on MI250X each GCD is one."""

    numa: NonNegativeInt | None = None
    """NUMA node that it is attached to; None: unknown."""
    cores: CpuList | None = None
    """The cores nearest to it, where the site documents more than the NUMA node (one L3 group per GCD)."""
    bus_id: BusId | None = None
    """PCI address, lower case, such as 0000:c1:00.0."""
    nic: str | None = None
    """Name of the nearest NIC."""


class SiteNic(_Strict, frozen=True, kw_only=True):
    """One interface of the high-speed network."""

    name: str
    """Its name as a network interface, such as hsn0."""
    numa: NonNegativeInt | None = None
    """NUMA node that it is attached to; None: unknown."""


class Node(_Cited, frozen=True, kw_only=True):
    """The hardware of one compute node."""

    cpu_model: str
    """The processor's name."""
    sockets: PositiveInt = 1
    """Processor packages; the cores are divided among them in equal blocks."""
    cores: CoreCount
    """Physical cores of the node, numbered from 0 without holes."""
    threads_per_core: ThreadCount = 1
    """Hardware threads per core."""
    numbering: Literal["spread", "adjacent"] = "spread"
    """spread: thread t of core c is CPU c + t x cores (x86 and Arm servers); adjacent: it is CPU
    c x threads_per_core + t (POWER, many virtual machines)."""
    numa: tuple[NumaDomain, ...] = ()
    """Its NUMA nodes; together they hold every core once. Empty: not documented; ``binding.cpu`` then leaves
    the choice of the cores to the launcher."""
    l3_groups: tuple[CpuList, ...] = ()
    """Cores that share a last-level cache."""
    reserved_cores: CpuList = ""
    """Cores that the site reserves for the system."""
    memory_gib: PositiveInt | None = None
    """Main memory of the node; None: not documented."""
    memory_request: str | None = None
    """The value that requests the whole memory of a node, as the scheduler takes it; None: no request."""
    gpus: tuple[SiteGpu, ...] = ()
    """In the order of their indices."""
    gpu_vendor: Literal["amd", "nvidia", "intel"] | None = None
    """Manufacturer of the GPUs."""
    gpu_model: str | None = None
    """The GPU's name."""
    gpu_type: str | None = None
    """Their name in requests to the scheduler, such as ``a100`` of Slurm's ``gpu:a100:4``."""
    gpu_slices: bool = False
    """The GPUs are MIG instances."""
    gpu_memory_gib: PositiveInt | None = None
    """Memory of one GPU."""
    gpu_arch: str | None = None
    """gfx90a, sm_90 and similar: the architecture that software must be built for."""
    nics: tuple[SiteNic, ...] = ()
    """Interfaces of the high-speed network."""
    local_scratch: str | None = None
    """Folder on a disk of the node; None: there is none."""
    count: PositiveInt | None = None
    """Nodes of this kind in the machine."""
    note: str | None = None
    """Facts that are inferred or doubtful."""


class FrameworkCores(_Cited, frozen=True, kw_only=True):
    """The cores that the site documents for the ranks of one framework."""

    cores: tuple[CpuList, ...]
    """Cores of each local rank; used for jobs with this many ranks per node."""
    reason: str
    """Written into the script as a comment."""


class Threads(_Cited, frozen=True, kw_only=True):
    """OMP_NUM_THREADS for the ranks of one framework."""

    value: PositiveInt
    """Threads of each rank; never more than the cores that it is bound to."""
    reason: str
    """Written into the script as a comment."""


class Binding(_Cited, frozen=True, kw_only=True):
    """How CPUs are bound and GPUs shown."""

    cpu: Literal["mask_cpu", "map_cpu", "cores", "list", "taskset", "at_start", "none"]
    """mask_cpu, map_cpu, cores: srun --cpu-bind; list: PALS --cpu-bind list; taskset: by the script;
    at_start: by each rank, which reads at its start where the node's GPUs are attached."""
    confined: bool = False
    """A job can use no cores but its own (cgroups): its ranks can bind themselves on parts of nodes."""
    gpu_visible_var: str | None = None
    """Variable with the GPUs that a rank sees, set per rank: ROCR_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES."""
    needs_whole_node: bool = True
    """CPU masks name CPUs of the whole node, so the job must have the whole node."""
    cores_for: dict[str, FrameworkCores] = {}
    """Framework -> the cores that the site documents for its ranks, instead of the computed ones."""
    threads_for: dict[str, Threads] = {}
    """Framework -> OMP_NUM_THREADS, where the site documents another number than the rank's cores."""


class KindBinding(_Strict, frozen=True, kw_only=True):
    """The part of the binding that follows from the hardware."""

    gpu_visible_var: str | None = None
    """Variable with the GPUs that a rank sees, of their manufacturer."""


class Mpi(_Cited, frozen=True, kw_only=True):
    """The MPI and how the launcher communicates with it."""

    implementation: str | None = None
    """The MPI that users link with."""
    plugin: str | None = None
    """Value of srun --mpi; None with ``plugin_open`` false: the site's default, nothing is passed."""
    plugin_open: bool = False
    """True: the site leaves the choice to the target machine (generic profiles)."""
    alternatives: dict[str, str] = {}
    """Other plugins that the site documents -> when to use them."""


class EnvVar(_Cited, frozen=True, kw_only=True):
    """One environment variable of the job; value null means: unset it."""

    value: str | None
    """None: unset it. May use shell variables of the job, such as $SLURM_JOB_ID (double-quote syntax)."""
    reason: str
    """Written into the script as the comment of the line."""
    outside_containers: bool = False
    """Only for jobs without a container: the site's container engine sets its own."""


class Billing(_Cited, frozen=True, kw_only=True):
    """The site's charge to a project for a job of whole nodes."""

    unit: str
    """The site's unit, such as GPU-hours or node-hours."""
    per_node_hour: PositiveFloat
    """Units for one whole node and one hour."""
    note: str | None = None
    """Cases that the rule leaves out, such as partitions with another rate."""


class Link(_Cited, frozen=True, kw_only=True):
    """How fast one link of the machine is by its design; measurements are in fabric.allreduce."""

    gb_s: PositiveFloat
    """Bandwidth in GB/s (10^9 bytes) in one direction: of one NIC; between two GPUs of a node that are
    linked, the slowest such pair where they differ; between a CPU and one GPU."""
    per_node: PositiveInt | None = None
    """NICs of a node; None: unknown, or the link is not a NIC. Names of NICs are in ``node.nics``."""
    kind: str | None = None
    """The medium of the link, such as NVLink 3 or PCIe 4 x16."""
    note: str | None = None
    """Further facts: other pairs of GPUs, what was computed from what."""


class Links(_Strict, frozen=True, kw_only=True):
    """The links of a node, each with its speed."""

    nic: Link | None = None
    """One NIC of the high-speed network; None: unknown."""
    gpu_gpu: Link | None = None
    """Between two GPUs of a node; None: unknown."""
    cpu_gpu: Link | None = None
    """Between a CPU and one GPU; None: unknown."""


class Network(_Cited, frozen=True, kw_only=True):
    """How the nodes are connected."""

    layout: Literal["dragonfly", "dragonfly+", "fat-tree"]
    """dragonfly: groups of nodes, each linked with each; dragonfly+: each group is a fat tree."""
    groups: PositiveInt | None = None
    """Groups of a dragonfly, or of a fat tree racks that share fewer links; None: unknown."""
    nodes_per_group: PositiveInt | None = None
    """Nodes of one of them; None: unknown, or they differ."""
    planes: PositiveInt | None = None
    """Networks side by side that every node is attached to: 2 is a dual plane; None: unknown."""
    taper: PositiveFloat | None = None
    """How many times less a group can send to other groups than its nodes can: 3 for 1:3; None: unknown."""
    note: str | None = None
    """Further facts."""


class AllreduceFigure(_Cited, frozen=True, kw_only=True):
    """A bandwidth that was measured and published, to compare your own measurements with."""

    nodes: PositiveInt
    """Nodes of the measurement."""
    gpus: PositiveInt
    """GPUs of the measurement, all nodes together."""
    message_bytes: PositiveInt
    """Size of the buffer."""
    bus_gb_s: PositiveFloat
    """Bus bandwidth in GB/s, as nccl-tests define it: 2(p-1)/p x bytes / time."""
    bus_gb_s_without_plugin: PositiveFloat | None = None
    """The same when the fabric's plugin is missing and TCP carries the messages."""


class FabricPlugin(_Cited, frozen=True, kw_only=True):
    """The plugin without which NCCL or RCCL sends by TCP; a job of several nodes without it gets a note."""

    name: str
    """Its name, with which its modules begin."""
    install: str
    """How users get it: a command line."""
    directive: str | None = None
    """Beginning of an option of the job that brings it, in place of a module, such as ``--uenv=``."""
    in_containers: bool = False
    """True: the site's container engine brings it into each image; False: an image must hold it."""


class Fabric(_Cited, frozen=True, kw_only=True):
    """The high-speed network and the variables that the communication libraries need for it."""

    kind: Literal["slingshot-11", "infiniband", "aries", "ethernet", "none", "unknown"] = "unknown"
    """The network. It does not follow from the GPU: GH200 nodes exist with Slingshot and with InfiniBand."""
    common: dict[str, EnvVar] = {}
    """Variables for every job."""
    single_node: dict[str, EnvVar] = {}
    """Only for jobs of one node."""
    multi_node: dict[str, EnvVar] = {}
    """Only for jobs of several nodes."""
    network: Network | None = None
    """How its nodes are connected; None: unknown."""
    launch_options: tuple[str, ...] = ()
    """Launcher options that the ``multi_node`` variables require."""
    name_suffix: str | None = None
    """Suffix for a node's name to be that of its interface of this network, where ranks must meet there (i on
    JUWELS); None: nothing is needed."""
    plugin: FabricPlugin | None = None
    """Plugin that jobs of several nodes load for NCCL or RCCL; None: the site's modules hold it, or it is
    unknown."""
    allreduce: tuple[AllreduceFigure, ...] = ()
    """Published bandwidths."""


class EasyBuild(_Cited, frozen=True, kw_only=True):
    """How users install with EasyBuild at the site."""

    modules: tuple[str, ...] = ()
    """Modules that provide ``eb``, in the order of loading."""
    prefix_variable: str = "EASYBUILD_PREFIX"
    """Variable with the installation folder; EBU_USER_PREFIX exists only in LUMI's stack."""
    prefix: str | None = None
    """The value that the site recommends."""
    toolchains: tuple[str, ...] = ()
    """Toolchains that work at the site."""
    note: str | None = None
    """Further facts."""


class Eessi(_Cited, frozen=True, kw_only=True):
    """EESSI at the site."""

    modules: tuple[str, ...] = ()
    """Modules that initialise it."""
    versions: tuple[str, ...] = ()
    """Versions of the stack."""
    note: str | None = None
    """Further facts."""


class Container(_Cited, frozen=True, kw_only=True):
    """Containers at the site."""

    runtime: ContainerRuntime | Literal["none"]
    """The program that starts them; container-engine: that of CSCS (srun --environment)."""
    options: tuple[str, ...] = ()
    """Options of the runtime that every job here needs, such as ``--module=gpu,nccl-plugin`` of Shifter."""
    gpu_flag: str | None = None
    """--nv, --rocm, or null where the site needs no flag."""
    binds: tuple[str, ...] = ()
    """Paths to bind for MPI and the fabric."""
    modules: tuple[str, ...] = ()
    """Shell lines that load what is needed (``module use ...``, ``module load ...``)."""
    binds_storage: bool = False
    """True: these modules, or the site's configuration, bind its file systems and the fabric, so that a job
    binds only what it names."""
    cotainr: str | None = None
    """Value of ``cotainr build --system``, with which images are built here; None: not documented."""
    annotations: dict[str, str] = {}
    """For the container engine: annotations of an image that is named without a definition (TOML file)."""
    images: tuple[str, ...] = ()
    """Images, or folders of images, that the site provides."""
    fabric_in_images: bool = False
    """True: the images of ``images`` hold the fabric's plugin of NCCL or RCCL."""
    note: str | None = None
    """Further facts."""


class Offer(_Cited, frozen=True, kw_only=True):
    """Software that the site provides or documents how to install."""

    environment: Environment = Environment()
    """Environment for it, in addition to ``setup``; ``$PREFIX`` stands for the folder of ``install``."""
    install: tuple[str, ...] = ()
    """Shell lines that install it once, with the setup loaded; ``$PREFIX`` is the folder to install into."""
    directives: tuple[str, ...] = ()
    """Options of the job's header that it needs."""
    env: dict[str, str] = {}
    """Environment variables that its jobs need."""
    mpi: str | None = None
    """Value of srun --mpi that its MPI needs; None: that of the site's MPI."""
    enter: str | None = None
    """Command that runs another one where it is loaded, for an installation on top; None: ``environment``
    does it."""
    versions: dict[str, str] = {}
    """Versions of its parts: torch, tensorflow, horovod, cuda, rocm, nccl, mpi (``Open MPI 4.1.6``)."""
    since: dt.date | None = None
    """Day from which the site has these versions; None: not documented."""
    lacks: dict[str, str] = {}
    """Module of Python that programs import and that is not in it -> since when, and why."""
    note: str | None = None
    """Further facts: age, what the site says about it."""


class NoOffer(_Cited, frozen=True, kw_only=True):
    """Software that the site documents not to have, or that was searched for in vain."""

    why: str
    """The statement of its page, with the day; or the places that were searched."""


class Software(_Cited, frozen=True, kw_only=True):
    """The software environment of a job."""

    setup: tuple[Directive, ...] = ()
    """Shell lines for every job, in order, each with its reason (``module load ...``)."""
    python: str = "python3"
    """The interpreter after the setup lines."""
    easybuild: EasyBuild | None = None
    """None: not documented by the site."""
    eessi: Eessi | None = None
    """None: not documented by the site."""
    container: Container | None = None
    """None: not documented by the site."""
    other_containers: tuple[Container, ...] = ()
    """Further runtimes that the site documents; a job names one of them by ``--container-runtime``."""
    wrapper: str | None = None
    """Module of the container wrapper (``pip-containerize``); None: not documented."""
    no_venv: str | None = None
    """Why Python packages must not be installed into folders here; None: the site does not say so."""
    offers: dict[str, Offer] = {}
    """Software that the site provides, by purpose as in ``hpclaunch software plan --for``; ``python``: one
    that virtual environments can be made with."""
    lacks: dict[str, NoOffer] = {}
    """Software that the site does not have, by purpose as ``offers``; what is in neither is not known."""
    fallbacks: dict[str, tuple[str, ...]] = {}
    """Module of ``setup`` or ``offers`` -> those of which the first that is there takes its place."""
    unversioned: dict[str, str] = {}
    """Module that is loaded without a version -> why: the site names none, or it has none."""
    prefix: str | None = None
    """Folder that users install into: storage that the site recommends for it, not a small home. Variables of
    the job that it may use: $USER and $SLURM_JOB_ACCOUNT."""
    note: str | None = None
    """The software that users choose themselves: images, frameworks."""


class Storage(_Cited, frozen=True, kw_only=True):
    """One file system."""

    path: str
    """Where it is mounted; may hold shell variables."""
    job_folder: str | None = None
    """The user's folder there, for the folders of jobs that are submitted over ssh; may use $USER, and
    $SLURM_JOB_ACCOUNT for the account. The first file system that has one counts."""
    kind: str | None = None
    """Lustre, GPFS, NFS, ..."""
    quota: str | None = None
    """Space and number of files."""
    purge: str | None = None
    """When files are deleted."""
    striping: str | None = None
    """The site's advice on striping."""


class Retired(_Cited, frozen=True, kw_only=True):
    """A machine that is switched off: its scripts are still read and planned, nothing is submitted."""

    since: dt.date | None = None
    """The day on which it was switched off; None: unknown."""
    successor: str | None = None
    """The machine that took its place; None: unknown."""


class ChangeLog(_Strict, frozen=True, kw_only=True):
    """A page on which the site announces changes of its software."""

    source: str
    """Key in ``sources`` of the page."""
    last_entry: dt.date
    """Day of its newest entry when it was read."""


class SiteProfile(_Strict, frozen=True, kw_only=True):
    """One machine."""

    schema: Literal[1]
    """Version of this format."""
    name: SiteName
    """The site's name; also the name of its file."""
    description: str
    """One line: machine, owner, GPUs."""
    status: Literal["production", "historic", "generic"] = "production"
    """historic: switched off, see ``retired``; generic: no particular machine."""
    retired: Retired | None = None
    """For status historic: since when, and what took its place."""
    extends: SiteName | None = None
    """Name of the profile that this one starts from. A generic one, or that of the same name, is inherited
    whole; of another machine only its hardware is, and how ranks are started and bound."""
    part_of: SiteName | None = None
    """Instead of ``extends``: name of the profile of the same machine, of which this is a partition or a
    cluster; it is inherited whole."""
    node_kind: SiteName | None = None
    """Name of the node kind, whose ``node``, ``links`` and ``binding`` the profile's own keys are merged
    over. Over a generic profile, ``binding`` is the scheduler's for a node whose cores are known."""
    sources: dict[str, Source] = {}
    """Pages cited by key in every ``source``."""
    changes: tuple[ChangeLog, ...] = ()
    """Pages on which the site announces changes, with which ``hpclaunch sites check`` compares facts."""
    scheduler: Scheduler
    """The scheduler, and the launcher of its ranks."""
    login: Login = Login()
    """Where users log in."""
    detect: Detect = Detect()
    """How the site is recognised."""
    account: Account = Account()
    """The rule for project accounts."""
    billing: Billing | None = None
    """The price of a job; None: unknown."""
    queues: dict[str, Queue] = {}
    """Partitions, QOS and queues by name, in the order of preference."""
    directives: tuple[Directive, ...] = ()
    """Header lines that every job at the site needs."""
    node: Node | None = None
    """None: unknown (generic profiles) or measured live (local)."""
    links: Links = Links()
    """How fast its NICs and the links of its GPUs are."""
    binding: Binding
    """How CPUs are bound and GPUs shown."""
    mpi: Mpi = Mpi()
    """The MPI and its plugin."""
    fabric: Fabric = Fabric()
    """The high-speed network."""
    env: dict[str, EnvVar] = {}
    """Variables that are not about the fabric: caches, GPU-aware MPI, proxies."""
    software: Software = Software()
    """The software environment."""
    environment: Environment | None = None
    """Software of jobs on top of ``software.setup``, unless the job or the user's config specifies it."""
    storage: dict[str, Storage] = {}
    """File systems by name."""
    internet_on_login: bool | None = None
    """Whether login nodes reach the internet; None: not documented, which is taken as yes."""
    internet_on_compute: bool | None = None
    """Whether compute nodes reach the internet, directly or through the proxy in ``env``; None: unknown."""
    traps: tuple[str, ...] = ()
    """Known pitfalls at the site."""

    @property
    def base(self) -> str | None:
        """Name of the profile that this one starts from."""
        return self.part_of or self.extends


class NodeKind(_Strict, frozen=True, kw_only=True):
    """The hardware of one kind of compute node, without a site."""

    schema: Literal[1]
    """Version of this format."""
    node_kind: SiteName
    """The kind's name; also the name of its file. The file has no ``name``."""
    description: str
    """One line: GPUs, processors, network."""
    sources: dict[str, Source]
    """Pages cited by key in every ``source``."""
    node: Node
    """The node, without what sites decide: cores that they reserve, memory that a job requests."""
    links: Links = Links()
    """How fast its NICs and the links of its GPUs are."""
    binding: KindBinding = KindBinding()
    """The part of the binding that follows from the hardware."""
