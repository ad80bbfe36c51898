"""``knowformer settings``: every setting of a run, or one of them."""

from dataclasses import asdict
from typing import Annotated

import typer

from knowformer.interfaces.console import JsonOption, out, print_json, print_line


def command(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="One setting, such as model.view_size."),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the reference page of all settings.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the settings of a run: default, bounds and meaning."""
    if markdown and (as_json or name is not None):
        raise typer.BadParameter("goes with neither NAME nor --json", param_hint="--markdown")
    from knowformer.interfaces.render.settings import render_settings, settings_page
    from knowformer.training.settings_reference import describe_settings, find_setting

    settings = describe_settings() if name is None else [find_setting(name)]
    if markdown:
        print_line(settings_page(settings).removesuffix("\n"))
    elif as_json:
        listed = [asdict(setting) for setting in settings]
        print_json(listed if name is None else listed[0])
    elif name is None:
        out.print(render_settings(settings))
    else:
        print_line(f"{name} = {settings[0].default_text}  ({settings[0].values})")
        print_line(settings[0].meaning)
