"""Groups of commands of which one may be left unsaid."""

from typing import Any

from typer.core import TyperGroup


def group_for(unsaid: str) -> type[TyperGroup]:
    """Make a group in which that command may be left out: `pack RUN…` is `pack make RUN…`."""

    class OrCommand(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            known = {*self.commands, *self.get_help_option_names(ctx)}
            said = not args or args[0] in known
            return super().parse_args(ctx, args if said else [unsaid, *args])

    return OrCommand
