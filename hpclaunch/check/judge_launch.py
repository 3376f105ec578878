"""Verdicts on the start of ranks: srun's plugins, PMIx, the MPI, and whether ranks find each other."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from hpclaunch.amounts import counted
from hpclaunch.check.check_report import AllreduceTimes, Check, Status, verdict
from hpclaunch.check.facts import NOT_FOUND, SETUP_MARK, BuildFacts, LaunchFacts, Outcome
from hpclaunch.check.judge_build import linked_family, lost_mpi
from hpclaunch.site.schema import AllreduceFigure, SiteProfile
from hpclaunch.site.site_scheduler import site_launcher
from hpclaunch.software.known_pairs import compatible, mpi_family

_HEADLINE = re.compile(r"MPI (?:plugin )?types are", re.IGNORECASE)
_VERSIONS = re.compile(r"specific pmix plugin versions available:\s*(.*)", re.IGNORECASE)
_CAUSE = re.compile(r"undefined symbol|cannot open shared object|\w*Error: |srun: error|not enough slots")
ALLREDUCE_MARK = "HPCLAUNCH-ALLREDUCE "
# A figure without the plugin may be wrong by half; if none is published, TCP reaches at most a tenth.
_TCP_MARGIN, _TCP_SHARE = 1.5, 0.1


def parse_mpi_list(text: str) -> tuple[str, ...]:
    """Return the plugins that ``srun --mpi=list`` names, including versions of PMIx; empty: none.

    Reads the list of Slurm 22.05 and later (one indented name per line) and the older one (``srun: NAME``).
    """
    names: list[str] = []
    listing = False
    for raw in text.splitlines():
        line = re.sub(r"^srun:\s*", "", raw).strip()
        if _HEADLINE.search(line):
            listing = True
            names += re.findall(r"[a-z]\w*", line.partition("are")[2])
        elif versions := _VERSIONS.search(line):
            names += re.findall(r"\w+", versions[1])
        elif listing and re.fullmatch(r"[a-z]\w*", line):
            names.append(line)
    return tuple(dict.fromkeys(names))


def judge_mpi_list(text: str, origin: str, profile: SiteProfile | None) -> Check:
    """Compare srun's plugins with the one that the site's jobs use."""
    offered = parse_mpi_list(text)
    if not offered:
        first = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")[:200]
        return verdict("mpi-plugin: no list", origin=origin, first=first)
    listed = f"{origin}: srun offers {', '.join(offered)}"
    useful = [plugin for plugin in offered if plugin not in ("none", "openmpi")]
    if profile is None or profile.mpi.plugin is None:
        return _any_plugin(listed, useful, profile)
    wanted = profile.mpi.plugin
    version_of_it = re.compile(rf"{re.escape(wanted)}(_v\d+)?")
    if any(map(version_of_it.fullmatch, offered)):
        return verdict("mpi-plugin: offered", listed=listed, wanted=wanted)
    others = f"use one that matches the MPI: --mpi={useful[0]}" if useful else "ask the site"
    return verdict("mpi-plugin: not offered", listed=listed, wanted=wanted, others=others)


def _any_plugin(listed: str, useful: list[str], profile: SiteProfile | None) -> Check:
    if useful:
        default = profile is not None and not profile.mpi.plugin_open
        which = "the site's default is used" if default else "any of them may match"
        return verdict("mpi-plugin: any", listed=listed, which=which)
    return verdict("mpi-plugin: no useful one", listed=listed)


def judge_launch(facts: LaunchFacts, build: BuildFacts, profile: SiteProfile | None) -> tuple[Check, ...]:
    """Judge everything about the start of ranks."""
    checks: list[Check] = []
    if facts.setup is not None:
        checks.append(judge_setup(facts.setup))
    if facts.mpi_list is not None:
        text, there = facts.mpi_list.stdout + facts.mpi_list.stderr, facts.mpi_list.exit_code != NOT_FOUND
        listed = judge_mpi_list(text, "srun --mpi=list", profile) if there else verdict("mpi-plugin: no srun")
        checks.append(listed)
    if facts.pmix is not None:
        checks += _pmix(facts)
    checks += _mpi_library(facts, build, profile)
    checks += [_ranks(via, outcome, facts, profile) for via, outcome in facts.ranks.items()]
    if facts.not_started and not facts.ranks:
        checks.append(verdict("mpi-launch: not started", why=facts.not_started))
    if facts.allreduce is not None:
        checks.append(judge_allreduce(facts.allreduce, profile))
    return tuple(checks)


def judge_setup(setup: Outcome) -> Check:
    """Judge whether the lines of the job's environment run."""
    if setup.exit_code == 0 and not setup.timed_out:
        return verdict("environment: runs")
    lines = setup.stderr.splitlines()
    failed = [line.removeprefix(SETUP_MARK) for line in lines if line.startswith(SETUP_MARK)]
    ending = f"stops at: {failed[0]}" if failed else setup.ending()
    words = next((line for line in lines if line.strip() and not line.startswith("HPCLAUNCH-")), "")
    found = verdict("environment: stops", ending=ending, words=words.strip()[:300])
    return msgspec.structs.replace(found, evidence=found.evidence.strip())


def _pmix(facts: LaunchFacts) -> Iterator[Check]:
    """Report the PMIx of the shell and those of srun; versions from 2 on are compatible with each other."""
    version = re.search(r"^\s*PMIX:\s*(\S+)", facts.pmix.stdout if facts.pmix else "", re.MULTILINE)
    offered = parse_mpi_list(facts.mpi_list.stdout + facts.mpi_list.stderr) if facts.mpi_list else ()
    of_srun = ", ".join(plugin for plugin in offered if plugin.startswith("pmix"))
    parts = [f"pmix_info reports {version[1]}"] if version else []
    parts += [f"srun offers {of_srun}"] if of_srun else []
    if parts:
        yield verdict("pmix: known", parts="; ".join(parts))


def _mpi_library(facts: LaunchFacts, build: BuildFacts, profile: SiteProfile | None) -> Iterator[Check]:
    """Compare the MPI that Horovod is linked with, the one that mpi4py finds, and the site's."""
    mpis = _known_mpis(facts, build, profile)
    evidence = "; ".join(what for _, what in mpis)
    if lost := lost_mpi(build):
        yield verdict("mpi-library: lost", lost=lost)
    elif mpis:
        alike = all(compatible(mpis[0][0], other) for other, _ in mpis)
        yield verdict("mpi-library: right" if alike else "mpi-library: wrong", mpis=evidence)


def _known_mpis(facts: LaunchFacts, build: BuildFacts, profile: SiteProfile | None) -> list[tuple[str, str]]:
    """Return (family, evidence) of each known MPI; the site's only together with another one."""
    linked = linked_family(build)
    mpis = [linked] if linked else []
    library = str(facts.ranks["mpi4py"].answers().get("library", "")) if "mpi4py" in facts.ranks else ""
    if library_family := mpi_family(library):
        mpis.append((library_family, f"mpi4py finds {library.partition(',')[0]}"))
    implementation = profile.mpi.implementation if profile else None
    site_family = mpi_family(implementation or "")
    if profile and site_family and mpis:
        mpis.append((site_family, f"{profile.name} has {implementation}"))
    return mpis


def open_mpi_at_run_time(facts: LaunchFacts) -> str | None:
    """Return the version of the Open MPI that started ranks use; None: another MPI, or no ranks."""
    outcome = facts.ranks.get("mpi4py")
    version = re.match(r"Open MPI v(\S+?),", str(outcome.answers().get("library", ""))) if outcome else None
    return version[1] if version else None


def _ranks(via: str, outcome: Outcome, facts: LaunchFacts, profile: SiteProfile | None) -> Check:
    by_mpi4py = via == "mpi4py"
    judged = partial(
        verdict,
        name="mpi-launch" if by_mpi4py else "horovod-launch",
        program=via if by_mpi4py else f"Horovod for {via}",
        ranks=facts.ranks_started,
        ending=outcome.ending(),
        remedy=_launch_remedy(profile, via),
    )
    answers = [each for each in outcome.all_answers() if "rank" in each]
    return (
        _judge_world(answers, facts.ranks_started, judged) if answers else _silence(outcome, profile, judged)
    )


def _silence(outcome: Outcome, profile: SiteProfile | None, judged: Callable[..., Check]) -> Check:
    if outcome.exit_code == NOT_FOUND:
        return judged("ranks: no launcher", why=outcome.last_error_line() or outcome.ending())
    if outcome.timed_out:
        return judged("ranks: too long")
    found = judged("ranks: silent", cause=_cause(outcome))
    # If the site is not known, the launcher may be one that works in jobs only.
    certain = profile is not None or _CAUSE.search(found.evidence)
    return found if certain else msgspec.structs.replace(found, status="unknown")


def _judge_world(answers: list[dict[str, Any]], ranks: int, judged: Callable[..., Check]) -> Check:
    """Judge ranks that answered: they are one world, each is alone, or only some answered."""
    places = sorted((int(each["rank"]), int(each["size"])) for each in answers)
    if places == [(rank, ranks) for rank in range(ranks)]:
        return judged("ranks: one world", hosts=", ".join(sorted({str(one.get("host")) for one in answers})))
    if ranks > 1 and len(places) > 1 and set(places) == {(0, 1)}:
        return judged("ranks: singletons")
    return judged("ranks: some", listed=", ".join(f"rank {rank} of {size}" for rank, size in places[:8]))


def _cause(outcome: Outcome) -> str:
    """Return the line of stderr that names the cause, else the last line."""
    named = (line.strip()[:300] for line in outcome.stderr.splitlines() if _CAUSE.search(line))
    return next(named, None) or outcome.last_error_line()


def _launch_remedy(profile: SiteProfile | None, via: str) -> str:
    if profile is not None and site_launcher(profile).plugin_list:
        plugin = profile.mpi.plugin
        there = f" (the site's is {plugin})" if plugin else ""
        return f"try another srun --mpi=NAME of srun --mpi=list{there}, or the MPI that matches it"
    built = "Horovod with MPI was built with" if via != "mpi4py" else "mpi4py finds"
    return (
        f"start it with the mpiexec of the MPI that {built}, and build Horovod with that MPI (not Gloo alone)"
    )


def judge_allreduce(outcome: Outcome, profile: SiteProfile | None) -> Check:
    """Judge whether all sums were correct, and compare the speed with the site's published figure."""
    document = next(iter(outcome.all_answers(ALLREDUCE_MARK)), None)
    if document is None:
        status: Status = "unknown" if outcome.timed_out else "missing"
        return verdict("allreduce: failed", status=status, ending=outcome.ending(), cause=_cause(outcome))
    sizes = document["sizes"]
    wrong = [each for each in sizes if each["wrong"]]
    nodes = counted(len(document["hosts"]), "node")
    over = f"{document['ranks']} ranks on {nodes} through {document['library']}"
    if wrong:
        form = "{wrong} elements at {message_bytes} bytes ({first_wrong})"
        return verdict(
            "allreduce: wrong sums", over=over, sums="; ".join(form.format(**each) for each in wrong)
        )
    if document["ranks"] < 2:
        return verdict("allreduce: one rank", over=over)
    best = max(sizes, key=lambda each: float(each["bus_gb_s"]))
    correct = f"all sums are correct over {over}, {len(sizes)} sizes up to {sizes[-1]['message_bytes']} bytes"
    reached = f"{best['bus_gb_s']:.3g} GB/s bus bandwidth at {best['message_bytes']} bytes"
    seconds = {str(each["message_bytes"]): float(each["seconds"]) for each in sizes}
    times = AllreduceTimes(ranks=document["ranks"], seconds=seconds)
    judged = _compared_with_figure(f"{correct}; {reached}", document, profile)
    return msgspec.structs.replace(judged, times=times)


def _compared_with_figure(evidence: str, document: dict[str, Any], profile: SiteProfile | None) -> Check:
    """Compare with the published figure for the nearest number of nodes; one node alone proves nothing."""
    nodes = len(document["hosts"])
    figures = profile.fabric.allreduce if profile else ()
    if nodes < 2 or not figures or profile is None:
        return verdict("allreduce: right", evidence=evidence)
    figure = min(figures, key=lambda each: abs(each.nodes - nodes))
    near = min(document["sizes"], key=lambda each: abs(each["message_bytes"] - figure.message_bytes))
    reached = float(near["bus_gb_s"])
    size = f"{counted(figure.gpus, 'GPU')} on {counted(figure.nodes, 'node')}"
    published = f"{profile.name} published {figure.bus_gb_s:g} GB/s for {size}"
    fabric = "Slingshot" if profile.fabric.kind.startswith("slingshot") else profile.fabric.kind
    slow = "slow in MPI" if document["via"] == "mpi" else "slow"
    case = "as published" if reached > tcp_below_gb_s(figure) else slow
    return verdict(f"allreduce: {case}", evidence=evidence, published=published, fabric=fabric)


def tcp_below_gb_s(figure: AllreduceFigure) -> float:
    """Return the bus bandwidth in GB/s below which messages went by TCP."""
    if figure.bus_gb_s_without_plugin:
        return _TCP_MARGIN * figure.bus_gb_s_without_plugin
    return _TCP_SHARE * figure.bus_gb_s
