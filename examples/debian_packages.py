"""Facts about Debian packages as a triples file: depends, recommends, section, maintainer, tags...

python examples/debian_packages.py packages.tsv          # those installed on this machine
python examples/debian_packages.py packages.tsv --all    # all that apt knows, some 60,000

docs/guides/debian_packages.md goes on from there.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

STATUS = Path("/var/lib/dpkg/status")

# Fields that name packages, with the relation that they become; "a (>= 1) | b" names a and b.
LINKS = {
    "Depends": "depends",
    "Pre-Depends": "depends",
    "Recommends": "recommends",
    "Suggests": "suggests",
    "Enhances": "enhances",
    "Breaks": "breaks",
    "Conflicts": "conflicts",
    "Replaces": "replaces",
    "Provides": "provides",
}
# Fields that say what a package is; values get a prefix, so that none passes for a package.
VALUES = {"Section": "section", "Maintainer": "maintainer", "Source": "source", "Tag": "tag"}

Stanza = dict[str, str]


def parse(text: str) -> Iterator[Stanza]:
    """Yields the fields of each package; an indented line goes on with the field above it."""
    for block in re.split(r"\n\s*\n", text):
        stanza = dict(re.findall(r"^([\w-]+):[ \t]*(.*(?:\n[ \t].*)*)", block, re.MULTILINE))
        if "Package" in stanza:
            yield stanza


def read_packages(everything: bool) -> list[Stanza]:
    """Returns the packages wanted; tags stand only in the lists of apt, if it has any."""
    lists = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=False)
    known = list(parse(lists.stdout))
    if everything:
        return known
    tags = {stanza["Package"]: stanza["Tag"] for stanza in known if "Tag" in stanza}
    installed = [s for s in parse(STATUS.read_text("utf-8")) if " installed" in s["Status"]]
    return [
        stanza | ({"Tag": tags[stanza["Package"]]} if stanza["Package"] in tags else {})
        for stanza in installed
    ]


def facts(stanza: Stanza) -> Iterator[tuple[str, str, str]]:
    """Yields what a package's fields say."""
    package = stanza["Package"]
    for field, relation in LINKS.items():
        for item in re.split(r"[,|]", stanza.get(field, "")):
            name = re.match(r"\s*([a-z0-9][a-z0-9+.-]+)", item)
            if name and name[1] != package:
                yield package, relation, name[1]
    for field, relation in VALUES.items():
        values = stanza.get(field, package if field == "Source" else "")
        for value in values.split(",") if field == "Tag" else [values]:
            text = " ".join(re.sub(r"[<(].*", "", value).split())  # no address, no version
            if text:
                yield package, relation, f"{relation}/{text}"


def main() -> None:
    """Writes the file named on the command line."""
    wanted = [argument for argument in sys.argv[1:] if argument != "--all"]
    target = Path(wanted[0] if wanted else "packages.tsv")
    packages = read_packages("--all" in sys.argv)
    lines = ["\t".join(fact) for stanza in packages for fact in facts(stanza)]
    target.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    print(f"{target}: {len(lines):,} facts about {len(packages):,} packages")


if __name__ == "__main__":
    main()
