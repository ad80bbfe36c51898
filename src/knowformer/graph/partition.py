"""A graph cut into regions of bounded size that keep most of its edges whole."""

import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.graph.adjacency import Adjacency
from knowformer.graph.traversal import connected_components


def cut_into_regions(
    adjacency: Adjacency, size: int, *, generator: torch.Generator
) -> list[Int[Tensor, " v"]]:
    """Returns the entities of each region, in rising order; every entity is in exactly one.

    Patches grow around random entities, one hop at a time, until they meet or hold ``size``
    entities, then take in what they enclose. Small patches share a region, up to that size.
    """
    patches = _members(_grow_patches(adjacency, size, generator))
    regions: list[list[Tensor]] = []
    free = 0
    for members in sorted(patches, key=len, reverse=True):
        if not regions or len(members) > free:
            regions.append([])
            free = size
        regions[-1].append(members)
        free -= len(members)
    return [torch.cat(parts).sort().values for parts in regions]


def facts_among(
    facts: Int[Tensor, "N 3"], members: Int[Tensor, " v"], num_entities: int
) -> Int[Tensor, "n 3"]:
    """Returns the facts between members, with entities numbered by their place among them."""
    place = torch.full((num_entities,), -1)
    place[members] = torch.arange(len(members))
    moved = torch.stack([place[facts[:, 0]], facts[:, 1], place[facts[:, 2]]], 1)
    return moved[(moved[:, 0] >= 0) & (moved[:, 2] >= 0)]


def _grow_patches(adjacency: Adjacency, size: int, generator: torch.Generator) -> Int[Tensor, " V"]:
    """Returns the number of each entity's patch."""
    num_entities = adjacency.num_entities
    num_patches = -(-num_entities // size)
    patch = torch.full((num_entities,), -1)
    seeds = torch.randperm(num_entities, generator=generator)[:num_patches]
    patch[seeds] = torch.arange(num_patches)
    for limit in (size, num_entities):  # what full patches enclose has nowhere else to go
        while _grow(patch, adjacency, limit, num_patches, generator):
            pass
    unreached = patch < 0
    inside = unreached[adjacency.sender]  # what is not reached is whole components
    ends = (adjacency.sender[inside].numpy(), adjacency.receiver[inside].numpy())
    lowest = torch.from_numpy(connected_components(*ends, num_entities))
    patch[unreached] = num_patches + lowest[unreached]
    return torch.unique(patch, return_inverse=True)[1]


def _grow(
    patch: Tensor, adjacency: Adjacency, size: int, num_patches: int, generator: torch.Generator
) -> bool:
    """Adds one hop of neighbours to every patch that has room; returns whether any was added."""
    room = size - torch.bincount(patch[patch >= 0], minlength=num_patches)
    owner, entity = patch[adjacency.sender], adjacency.receiver
    reaches = ((owner >= 0) & (patch[entity] < 0)).nonzero().squeeze(1)
    reaches = reaches[room[owner[reaches]] > 0]
    # A random one of the patches that reach an entity gets it, the first come up to their room.
    reaches = reaches[torch.randperm(len(reaches), generator=generator)]
    found, first = _first_of_each(entity[reaches])
    wanted = owner[reaches[first]]
    order = torch.argsort(wanted, stable=True)
    counts = torch.bincount(wanted, minlength=num_patches)
    place = torch.arange(len(order)) - (torch.cumsum(counts, 0) - counts)[wanted[order]]
    fits = order[place < room[wanted[order]]]
    patch[found[fits]] = wanted[fits]
    return len(fits) > 0


def _first_of_each(values: Int[Tensor, " n"]) -> tuple[Int[Tensor, " u"], Int[Tensor, " u"]]:
    """Returns the distinct values in order of appearance, and where each appears first."""
    ordered, order = torch.sort(values, stable=True)
    is_first = torch.ones_like(ordered, dtype=torch.bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    first = order[is_first].sort().values
    return values[first], first


def _members(labels: Int[Tensor, " V"]) -> tuple[Tensor, ...]:
    """Returns the positions of each label, in rising order."""
    return torch.argsort(labels, stable=True).split(torch.bincount(labels).tolist())
