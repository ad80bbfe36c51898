"""Makes ``src/knowformer/data/catalog.json`` from a manifest with the data files beside it.

Usage: ``python scripts/make_catalog.py DATA/MANIFEST.tsv [--output FILE]``

The manifest is TSV with a header: path, sha256, bytes, lines, origin, origin_blob, note. Rows of
folders without splits (``graphs/``) are left out. Counts are taken from the files themselves;
checksums too, and they must agree with the manifest. The embedded graphs come from the package. The
same input gives the same bytes.
"""

import argparse
import csv
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from knowformer.storage.atomic_files import write_text
from knowformer.storage.triples_io import NamedTriple, read_edges, read_triples

DATA_FOLDER = Path(__file__).resolve().parents[1] / "src" / "knowformer" / "data"
KINDS = ("transductive", "development", "inductive", "fully-inductive", "homogeneous")
SPLITS = ("train", "msg", "valid", "test", "edges")

# As stated by the repositories themselves.
LICENCES = {
    "jnanliu/KnowFormer": "MIT",
    "TimDettmers/ConvE": "MIT",
    "kimiyoung/planetoid": "MIT",
    "DeepGraphLearning/AStarNet": "MIT",
    "villmow/datasets_knowledge_embedding": "MIT",
    "tsafavi/codex": "MIT",
    "hwwang55/PathCon": "MIT",
    "migalkin/StarE": "MIT",
    "pp413/Knowledge_embedding_benchmark_datasets": "Apache-2.0",
    "bdi-lab/InGram": "CC BY-NC-SA 4.0",
    "LARS-research/AdaProp": "no licence file",
    "kkteru/grail": "no licence file",
    "guojiapub/BiQUE": "no licence file",
    "TachiChan/HoGRN": "no licence file",
    "seukgcode/PAAR": "no licence file",
    "TaoMiner/inferwiki": "no licence file",
    "THU-KEG/PKGC": "no licence file",
}
EMBEDDED_ORIGIN = "PyKEEN 1.11.1 on PyPI"
EMBEDDED_LICENCE = "MIT, Copyright (c) 2019-2024 PyKEEN Project Team"

# By the beginning of a name; the first that fits.
UNDERLYING = {
    "fb": "Freebase",
    "wn": "WordNet",
    "ne": "NELL",
    "nl": "NELL",
    "ya": "YAGO",
    "um": "UMLS",
    "wk": "Wikidata",
    "codex": "Wikidata",
    "wd": "Wikidata",
    "wi": "Wikidata",
    "in": "Wikidata",
}

# Entities and relations of data sets of which a file is not at hand.
STATED_COUNTS = {"yago3-10": (123_182, 37)}

UMLS_NOTE = (
    "umls and umls-pykeen hold the same 6,529 triples (apart from upper and lower case) split "
    "otherwise: results on the two are not comparable."
)
NOTES: dict[str, tuple[str, ...]] = {
    "fb15k-237": (
        "9 valid and 28 test triples name an entity that is not in train.",
        "entity_names.txt and relation_names.txt give a readable name for each id.",
    ),
    "wn18rr": (
        "210 valid and 210 test triples name an entity that is not in train.",
        "entity_names.txt gives synset names; 161 ids stand for more than one synset.",
    ),
    "nell-995": (
        "102 valid triples name an entity that is not in train.",
        "The split with 2,818 test triples; other releases of NELL-995 have 3,992.",
        "train.txt has the triples of the KnowFormer benchmark, not its line order.",
    ),
    "yago3-10": (
        "train.txt is known by its md5 sum alone, as listed by uclnlp/inferbeddings.",
        "entities.txt and relations.txt map names to ids; relations.txt lists inverses too.",
    ),
    "yago3-10-quarter": (
        "A random quarter of YAGO3-10's training triples, without valid and test: for speed and "
        "memory at that scale, not for accuracy.",
    ),
    "umls": ("train.txt is facts.txt (first 4,006 lines) followed by train.txt.", UMLS_NOTE),
    "umls-pykeen": (UMLS_NOTE,),
    "family": (
        "train.txt is facts.txt (first 17,615 lines) followed by train.txt.",
        "12 valid and 18 test triples name an entity that is not in train.",
    ),
    "kinship": ("The same split as in the ConvE archives.",),
    "nations": ("The same split as in the ConvE archives.",),
    "wn18rr_v3": ("The training graph and the test graph share 8 entities.",),
    "nell-995_v3": ("The training graph and the test graph share 3 entities.",),
    "nell-995_v4": ("The training graph and the test graph share 1 entity.",),
    "citeseer": ("48 of the nodes have no edge; they are counted as entities.",),
}

ORIGIN = r"github (\S+) @ ([0-9a-f]+)"  # repository and commit

Row = dict[str, str]
Json = dict[str, Any]


def build_catalog(manifest: Path) -> Json:
    """Returns the whole catalogue, entries in a fixed order."""
    grouped: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    with manifest.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            kind, *folder = row["path"].split("/")
            if kind in KINDS:
                grouped[kind, folder[0].removesuffix("_ind")].append(row)
    embedded = {folder.name: folder for folder in (DATA_FOLDER / "embedded").iterdir()}
    embedded = {name: folder for name, folder in embedded.items() if folder.is_dir()}
    entries = [build_embedded(name, folder) for name, folder in embedded.items()]
    for entry in entries:
        check_against_manifest(entry, grouped.pop((entry["kind"], entry["name"]), []))
    entries += [
        build_entry(kind, name, rows, manifest.parent) for (kind, name), rows in grouped.items()
    ]
    entries.sort(key=lambda entry: (KINDS.index(entry["kind"]), natural_key(entry["name"])))
    return {"made_by": "scripts/make_catalog.py", "entries": entries}


def build_embedded(name: str, folder: Path) -> Json:
    """Returns the entry of a graph that ships inside the package."""
    files = [folder / f"{split}.txt" for split in ("train", "valid", "test")]
    return {
        "name": name,
        "kind": "transductive",
        "embedded": True,
        "counts": count_graph({path.stem: read_triples(path) for path in files}),
        "origin": EMBEDDED_ORIGIN,
        "licence": with_underlying(EMBEDDED_LICENCE, name),
        "notes": list(NOTES.get(name, ())),
        "files": [
            {"path": f"transductive/{name}/{path.name}", **measure(path), "sources": []}
            for path in files
        ],
    }


def check_against_manifest(entry: Json, rows: list[Row]) -> None:
    """Stops when an embedded file differs from the manifest's file of the same name."""
    expected = {row["path"]: row["sha256"] for row in rows}
    for file in entry["files"]:
        if expected.get(file["path"], file["sha256"]) != file["sha256"]:
            raise SystemExit(f"The embedded {file['path']} is not the file of the manifest.")


def build_entry(kind: str, name: str, rows: list[Row], data: Path) -> Json:
    """Returns the entry of a data set described by manifest rows."""
    rows = sorted(rows, key=lambda row: file_key(row["path"]))
    commits = [re.findall(ORIGIN, row["origin"]) for row in rows]
    origins = list(dict.fromkeys(origin for of_file in commits for origin in of_file))
    repositories = list(dict.fromkeys(repository for repository, _ in origins))
    entry: Json = {"name": name, "kind": kind}
    entry |= count_entry(kind, name, rows, data)
    licence = "; ".join(f"{LICENCES[repository]} ({repository})" for repository in repositories)
    if kind == "inductive":
        licence += f"; splits first published by kkteru/grail ({LICENCES['kkteru/grail']})"
    entry["origin"] = "; ".join(f"{repository} @ {commit}" for repository, commit in origins)
    entry["licence"] = with_underlying(licence, name)
    entry["notes"] = list(NOTES.get(name, ()))
    entry["files"] = [build_file(row, data) for row in rows]
    return entry


def build_file(row: Row, data: Path) -> Json:
    """Returns one file of an entry: checksum, size, and where to download it."""
    if row["sha256"] == "-":
        note = row["note"]
        measured: Json = {
            "bytes": None,
            "lines": stated_number(r"([\d,]+) triples expected", note),
            "md5": re.findall(r"md5 ([0-9a-f]{32})", note)[0],
        }
    else:
        measured = measure(data / row["path"])
        if measured["sha256"] != row["sha256"]:
            raise SystemExit(f"{row['path']} is not the file of the manifest.")
    file: Json = {"path": row["path"], **measured}
    if Path(row["path"]).stem not in SPLITS:
        file["optional"] = True
    return {**file, "sources": build_sources(row, data)}


def build_sources(row: Row, data: Path) -> list[str]:
    """Returns the addresses whose contents, one after the other, are the file; none if derived."""
    published = re.fullmatch(rf"{ORIGIN} : (.+)", row["origin"])
    if published is None:
        return []
    repository, commit, path = published.groups()
    if " + " in path:
        first, *others = path.split(" + ")
        parts = [first, *(f"{first.rsplit('/', 1)[0]}/{other}" for other in others)]
    elif "!" in path or row["origin_blob"] == "-":
        return []
    else:
        parts = [path]
        local = data / row["path"]
        if local.exists() and git_blob_id(local) != row["origin_blob"]:
            raise SystemExit(f"{row['path']} is not the published file {row['origin_blob']}.")
    base = f"https://raw.githubusercontent.com/{repository}/{commit}"
    return [f"{base}/{quote(part)}" for part in parts]


def count_entry(kind: str, name: str, rows: list[Row], data: Path) -> Json:
    """Returns ``counts`` and, where the test graph is another one, ``test_graph_counts``."""
    if kind == "homogeneous":
        (row,) = rows
        counts = count_graph({"edges": read_edges(data / row["path"], "edge")})
        counts["entities"] = stated_number(r"(\d+) nodes", row["note"])
        return {"counts": counts}
    if name in STATED_COUNTS:
        files = [build_file(row, data) for row in rows]
        facts = {Path(f["path"]).stem: f["lines"] for f in files if "optional" not in f}
        entities, relations = STATED_COUNTS[name]
        return {"counts": {"entities": entities, "relations": relations, "facts": facts}}
    first: dict[str, list[NamedTriple]] = {}
    second: dict[str, list[NamedTriple]] = {}
    for row in rows:
        path = Path(row["path"])
        if path.stem in SPLITS:
            is_second = path.parent.name.endswith("_ind") or (
                kind == "fully-inductive" and path.stem != "train"
            )
            (second if is_second else first)[path.stem] = read_triples(data / path)
    counts = {"counts": count_graph(first)}
    return counts | ({"test_graph_counts": count_graph(second)} if second else {})


def count_graph(splits: dict[str, list[NamedTriple]]) -> Json:
    """Returns how many entities and relations the splits name, and the facts of each."""
    triples = [triple for split in splits.values() for triple in split]
    entities = {head for head, _, _ in triples} | {tail for _, _, tail in triples}
    return {
        "entities": len(entities),
        "relations": len({relation for _, relation, _ in triples}),
        "facts": {split: len(facts) for split, facts in splits.items()},
    }


def measure(path: Path) -> Json:
    """Returns size, lines and checksum of a file."""
    content = path.read_bytes()
    return {
        "bytes": len(content),
        "lines": content.count(b"\n"),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def git_blob_id(path: Path) -> str:
    """Returns the id under which git stores the file's content."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def stated_number(pattern: str, note: str) -> int:
    """Returns the number that a note gives in the place of the pattern's group."""
    return int(re.findall(pattern, note)[0].replace(",", ""))


def with_underlying(licence: str, name: str) -> str:
    """Returns the licence text with the resource the data set was drawn from, if it has terms."""
    resources = [text for prefix, text in UNDERLYING.items() if name.startswith(prefix)]
    return f"{licence}; {resources[0]} has terms of its own" if resources else licence


def natural_key(name: str) -> list[tuple[int, str]]:
    """Returns a key that sorts nl-25 before nl-100."""
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", name)]


def file_key(path: str) -> tuple[str, int, str]:
    """Returns a key that sorts by folder, then train before valid before test."""
    folder, name = path.rsplit("/", 1)
    stem = name.removesuffix(".txt")
    return folder, SPLITS.index(stem) if stem in SPLITS else len(SPLITS), name


def main(arguments: Iterable[str] | None = None) -> None:
    """Reads the command line and writes the catalogue."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("manifest", type=Path, help="MANIFEST.tsv, with the data files beside it")
    parser.add_argument("--output", type=Path, default=DATA_FOLDER / "catalog.json")
    options = parser.parse_args(None if arguments is None else list(arguments))
    catalog = build_catalog(options.manifest)
    write_text(options.output, json.dumps(catalog, indent=1, ensure_ascii=False) + "\n")
    print(f"{len(catalog['entries'])} data sets written to {options.output}")


if __name__ == "__main__":
    main()
