from pathlib import Path

from rich.console import Console

from knowformer.interfaces.render.settings import render_settings, settings_page
from knowformer.training.settings_reference import describe_settings, find_setting

PAGE = Path(__file__).resolve().parents[4] / "docs" / "reference" / "settings.md"


def test_the_page_of_the_documentation_is_up_to_date() -> None:
    made = settings_page(describe_settings())
    assert PAGE.read_text("utf-8") == made, "knowformer settings --markdown makes it"


def test_a_narrow_terminal_shows_names_whole() -> None:
    console = Console(width=80)
    with console.capture() as shown:
        console.print(render_settings([find_setting("training.adversarial_temperature")]))
    assert " training.adversarial_temperature " in shown.get()
