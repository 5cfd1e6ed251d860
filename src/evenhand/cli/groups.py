"""Groups of commands of which one may be left unsaid."""

from typing import Any

from typer.core import TyperGroup


def group_for(unsaid: str, *, bare: bool = False) -> type[TyperGroup]:
    """Make a group in which that command may be left out: `pack RUN…` is `pack make RUN…`.

    With `bare` the group's name alone is that command too; else it shows the help.
    """

    class OrCommand(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            names = {*self.commands, *self.get_help_option_names(ctx)}
            explicit = args[0] in names if args else not bare
            return super().parse_args(ctx, args if explicit else [unsaid, *args])

    return OrCommand
