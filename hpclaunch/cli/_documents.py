"""The JSON documents of all commands: how they are printed. No command."""

import click


def print_document(document: object, indent: int | None = None) -> None:
    """Print one JSON document, or a list of them, on stdout; its type is in the ``DOCUMENTS`` of its room."""
    from hpclaunch.json_document import document_text

    click.echo(document_text(document, indent))
