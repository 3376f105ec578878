"""Pictures in files, for the commands that draw. No command."""

from pathlib import Path

import click

from hpclaunch.errors import BadInputError


def check_picture_name(path: Path | None) -> None:
    """Refuse a file whose name does not end in .svg, before anything is computed."""
    if path is not None and path.suffix.lower() != ".svg":
        raise BadInputError(
            f"--picture {str(path) if path.name else repr('')}: the picture is an SVG document",
            "name a file that ends in .svg; a browser or Inkscape shows it, and converts it to PNG or PDF",
        )


def write_picture(path: Path, drawing: str, what: str = "") -> None:
    """Write the drawing; an interrupted write leaves no file. ``what``: words for the message."""
    from hpclaunch.host.this_machine import LocalHost

    LocalHost().write_file(str(path), drawing.encode())
    click.echo(f"picture{what} in {path}", err=True)
