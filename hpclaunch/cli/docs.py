"""``hpclaunch docs``: the pages of the documentation, which the wheel brings."""

from pathlib import Path

import click

from hpclaunch.cli._options import options
from hpclaunch.errors import BadInputError
from hpclaunch.package_data import resource_dir


@click.command()
@options("docs")
@click.pass_context
def command(ctx: click.Context, page: str | None) -> None:
    """Show a PAGE of the documentation of this version, in a pager on a terminal; without PAGE list all."""
    from hpclaunch.cli._terminal import terminal_table

    folder = resource_dir("docs")
    pages = {str(path.relative_to(folder).with_suffix("")): path for path in sorted(folder.rglob("*.md"))}
    if page is not None:
        click.echo_via_pager(_path(page, pages).read_text("utf-8").rstrip("\n"), color=ctx.color)
        return
    click.echo(terminal_table((name, _title(path)) for name, path in pages.items()))


def _path(page: str, pages: dict[str, Path]) -> Path:
    """Return the file of the page of this name. Raises BadInputError where there is none, or several."""
    name = page.strip("/").removesuffix(".md").removeprefix("docs/")
    found = [name] if name in pages else [one for one in pages if one.endswith(f"/{name}")]
    if len(found) == 1:
        return pages[found[0]]
    if found:
        raise BadInputError(f"several pages end so: {', '.join(found)}", "give a longer part of the path")
    from difflib import get_close_matches

    ends = {one.rpartition("/")[2]: one for one in pages}
    near = get_close_matches(name, [*pages, *ends], n=1)
    hint = f"did you mean {near[0]}?" if near else "hpclaunch docs lists all"
    raise BadInputError(f"no page of the documentation is named {page!r}", hint)


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return next((line.strip("# \n") for line in file if line.startswith("# ")), "")
