"""``callwright completion``: what a shell needs to complete commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_VARIABLE = "_CALLWRIGHT_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what SHELL is to read so that Tab completes commands, options, and the names of components and recipes.

    \b
    bash, in ~/.bashrc:                   eval "$(callwright completion bash)"
    zsh, in ~/.zshrc:                     eval "$(callwright completion zsh)"
    fish, in ~/.config/fish/config.fish:  callwright completion fish | source
    """
    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(ctx.find_root().command, {}, "callwright", _VARIABLE).source())
