"""Every module has a test of its name, or the contributors' guide says what tests it."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE, UNIT = ROOT / "src" / "knowformer", ROOT / "tests" / "unit"
GUIDE = (ROOT / "docs" / "guides" / "contributing.md").read_text("utf-8")


def has_test_of_its_name(module: str) -> bool:
    path = Path(module)
    return (UNIT / path.parent / f"test_{path.stem.strip('_')}.py").exists()


def test_every_module_has_a_test_of_its_name_or_a_reason() -> None:
    modules = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    modules = {module for module in modules if not module.endswith("__init__.py")}
    excused = set(re.findall(r"`([\w/]+\.py)`", GUIDE.partition("\n## Tests\n")[2]))
    excused = {name for name in excused if not name.startswith("tests/")}
    assert {module for module in modules if not has_test_of_its_name(module)} == excused
