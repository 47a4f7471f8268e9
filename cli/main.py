"""Placeholder until the command line is merged."""

import typer

from cli.up import up

app = typer.Typer(add_completion=False)
app.command()(up)


@app.command()
def version() -> None:
    """Placeholder, so that `up` is a subcommand."""


def main() -> None:
    app()
