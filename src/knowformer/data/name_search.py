"""NameSearch: finds names and readable names while they are typed, misspelt or not.

A name matches exactly, by its beginning, by the beginnings of its words, or because its words are
spelt alike; in this order, shorter ones first. Case and accents make no difference.

Every name and readable name is an entry. Entries are kept in segments that never change: sorted
texts and words, found by bisection, and for spelling the pieces of three letters that words have in
common with those typed. New names make a small segment more; small ones are joined.
"""

import heapq
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import chain, islice
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

How = Literal["exact", "prefix", "word", "similar"]
Numbers = npt.NDArray[np.int64]
Ranked = list[tuple[tuple[float, str], str]]
"""Names, each after what it is sorted by."""

MAX_TYPED = 64  # letters that are looked for; more are no help
LAST = chr(0x10FFFF)  # stands after every letter that a name may have
WORDS = re.compile(r"[^\W_]+")
END = "\0"  # of a text; no folded text has it
WORDS_AND_ENDS = re.compile(rf"[^\W_]+|{END}")
PIECE = 3  # letters
NUM_PIECES = 1 << 16  # some pieces share a number: what they find is compared anyway
COMMON_PIECE = 20_000  # words; a piece that more of them have tells little
MOST_ALIKE = 32  # words that are compared letter by letter
ALIKE = 0.65  # of the letters, at least, on average over the words


@dataclass(frozen=True)
class Match:
    """A name that was found."""

    name: str
    label: str | None
    """Its readable name, where there is one."""
    how: How


class SegmentArrays(NamedTuple):
    """Numbers of entries, of words, and of the pieces of these."""

    owners: Numbers  # the name of each entry
    lengths: Numbers  # of each entry's text
    word_offsets: Numbers  # the entries with word w are word_offsets[w] .. word_offsets[w + 1]
    entries_of_word: npt.NDArray[np.int32]
    word_lengths: Numbers
    piece_offsets: Numbers  # the words with piece p, likewise
    words_of_piece: npt.NDArray[np.int32]


class NameSearch:
    """An index of names; immutable, so that several threads may search while names are added."""

    def __init__(self, names: Sequence[str], labels: Mapping[str, str] | None = None) -> None:
        """Indexes names; a million take some seconds.

        Args:
            names: distinct names.
            labels: readable names by name; those of other names are left out.
        """
        self._labels = labels or {}
        self._segments: tuple[Segment, ...] = (Segment.build(list(names), self._labels),)

    @classmethod
    def of_segment(cls, segment: "Segment", labels: Mapping[str, str]) -> "NameSearch":
        """Returns the search of names that are indexed already.

        Args:
            segment: of all names.
            labels: what it was built with.
        """
        result = cls.__new__(cls)
        result._labels = labels
        result._segments = (segment,)
        return result

    @property
    def segment(self) -> "Segment":
        """The index of the names that it began with."""
        return self._segments[0]

    def with_names(self, names: Iterable[str]) -> "NameSearch":
        """Returns an index with more names, none of which is there; this one stays as it is."""
        new = list(names)
        if not new:
            return self
        result = NameSearch.__new__(NameSearch)
        result._labels = self._labels
        segments = list(self._segments)
        # Each segment but the first is larger than the next: there are never many of them.
        while len(segments) > 1 and len(segments[-1].names) <= len(new):
            new = [*segments.pop().names, *new]
        result._segments = (*segments, Segment.build(new, self._labels))
        return result

    def search(self, text: str, limit: int = 10) -> list[Match]:
        """Returns the best matches, best first; the first names where nothing was typed."""
        typed = fold(text.strip()[:MAX_TYPED])
        found: dict[str, How] = {}
        if not typed:
            every = chain.from_iterable(segment.names for segment in self._segments)
            found = dict.fromkeys(islice(every, limit), "prefix")
        for how, find in WAYS.items():
            if len(found) < limit and typed:
                # Twice as many: a name and its readable name may both be found.
                ranked = heapq.merge(*(find(part, typed, 2 * limit) for part in self._segments))
                for _, name in ranked:
                    found.setdefault(name, how)
        best = islice(found.items(), limit)
        return [Match(name, self._labels.get(name), how) for name, how in best]


class Segment:
    """Some names, and what they are found by."""

    def __init__(
        self,
        names: Sequence[str],
        texts: Sequence[str],
        words: Sequence[str],
        arrays: SegmentArrays,
    ) -> None:
        """Takes an index that ``build`` made; it may be stored.

        Args:
            names: the names.
            texts: of the entries, sorted; an entry's number is its place.
            words: those of the texts, distinct and sorted.
            arrays: numbers of both.
        """
        self.names = names
        self.texts = texts
        self.words = words
        self.arrays = arrays

    @classmethod
    def build(cls, names: Sequence[str], labels: Mapping[str, str]) -> "Segment":
        """Indexes names."""
        texts = [fold(name) for name in names]
        owners = list(range(len(names)))
        for number, name in enumerate(names) if labels else ():
            label = fold(labels.get(name, ""))
            if label and label != texts[number]:
                texts.append(label)
                owners.append(number)
        order = sorted(range(len(texts)), key=texts.__getitem__)
        texts = [texts[entry] for entry in order]
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        words, word_offsets, entries_of_word = _index_words(texts)
        word_lengths = np.fromiter(map(len, words), np.int64, len(words))
        pieces = _index_pieces(words, word_lengths)
        owners = np.array(owners, dtype=np.int64)[order]
        arrays = SegmentArrays(
            owners, lengths, word_offsets, entries_of_word, word_lengths, *pieces
        )
        return cls(names, texts, words, arrays)

    def exact(self, typed: str, _most: int) -> Ranked:
        """Returns the names that are what was typed."""
        first = bisect_left(self.texts, typed)
        last = bisect_left(self.texts, typed + "\0", first)
        return self._shortest(np.arange(first, last), last - first)

    def prefix(self, typed: str, most: int) -> Ranked:
        """Returns names that begin with what was typed."""
        first = bisect_left(self.texts, typed)
        last = bisect_left(self.texts, typed + LAST, first)
        return self._shortest(np.arange(first, last), most)

    def word(self, typed: str, most: int) -> Ranked:
        """Returns names with words that begin with the words typed, in any order."""
        found = np.ones(len(self.texts), dtype=bool)
        parts = WORDS.findall(typed)
        for part in parts:
            has_word = np.zeros(len(found), dtype=bool)
            has_word[self._entries_with(*self._begun(part))] = True
            found &= has_word
        return self._shortest(np.flatnonzero(found), most) if parts else []

    def similar(self, typed: str, most: int) -> Ranked:
        """Returns names with words that are spelt like the words typed."""
        parts = WORDS.findall(typed)
        likeness = np.zeros(len(self.texts), dtype=np.float32)
        for part in parts:
            best = np.zeros_like(likeness)
            for word, alike in self._words_like(part):  # the most alike last
                best[self._entries_with(word, word + 1)] = alike
            best[self._entries_with(*self._begun(part))] = 1.0
            likeness += best / np.float32(len(parts))
        near = np.flatnonzero(likeness >= ALIKE)
        # The most alike first, then the shortest.
        order = self.arrays.lengths[near] - 1e6 * np.round(likeness[near], 3)
        if len(near) > most:
            chosen = np.argpartition(order, most)[:most]
            near, order = near[chosen], order[chosen]
        ranked = sorted(zip(order.tolist(), near.tolist(), strict=True))
        return [((place, self.texts[entry]), self._name(entry)) for place, entry in ranked]

    def _begun(self, part: str) -> tuple[int, int]:
        """Where the words that begin with a part start and stop."""
        first = bisect_left(self.words, part)
        return first, bisect_left(self.words, part + LAST, first)

    def _entries_with(self, first: int, last: int) -> npt.NDArray[np.int32]:
        start, stop = self.arrays.word_offsets[first], self.arrays.word_offsets[last]
        return self.arrays.entries_of_word[start:stop]

    def _words_like(self, part: str) -> list[tuple[int, float]]:
        """Words that are spelt like a part, the most alike last."""
        pieces = np.unique(_pieces([part])).astype(np.int64)
        starts, stops = self.arrays.piece_offsets[pieces], self.arrays.piece_offsets[pieces + 1]
        tells = stops - starts <= COMMON_PIECE
        shared = [
            self.arrays.words_of_piece[start:stop]
            for start, stop in zip(starts[tells], stops[tells], strict=True)
        ]
        if len(part) < PIECE or not shared:
            return []
        counts = np.bincount(np.concatenate(shared))
        near = np.flatnonzero(counts)
        if len(near) > MOST_ALIKE:
            # Most pieces in common, then of the nearest length.
            apart = np.abs(self.arrays.word_lengths[near] - len(part)) - 1000 * counts[near]
            near = near[np.argpartition(apart, MOST_ALIKE)[:MOST_ALIKE]]
        matcher = SequenceMatcher(None, autojunk=False)
        matcher.set_seq2(part)
        alike: list[tuple[float, int]] = []
        for word in near.tolist():
            matcher.set_seq1(self.words[word])
            if matcher.real_quick_ratio() >= ALIKE and (ratio := matcher.ratio()) >= ALIKE / 2:
                alike.append((ratio, word))
        return [(word, ratio) for ratio, word in sorted(alike)]

    def _shortest(self, entries: Numbers, most: int) -> Ranked:
        if len(entries) > most:
            entries = entries[np.argpartition(self.arrays.lengths[entries], most)[:most]]
        numbers: list[int] = entries.tolist()
        ranked = sorted((len(self.texts[entry]), self.texts[entry], entry) for entry in numbers)
        return [((length, text), self._name(entry)) for length, text, entry in ranked]

    def _name(self, entry: int) -> str:
        return self.names[int(self.arrays.owners[entry])]


WAYS: dict[How, Callable[[Segment, str, int], Ranked]] = {
    "exact": Segment.exact,
    "prefix": Segment.prefix,
    "word": Segment.word,
    "similar": Segment.similar,
}
"""How names are found, best way first."""


def fold(text: str) -> str:
    """Returns a text without what makes no difference: case and accents."""
    if not text.isascii():
        plain = unicodedata.normalize("NFKD", text.casefold())
        text = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return text.lower().replace(END, " ")


def _index_words(texts: list[str]) -> tuple[list[str], Numbers, npt.NDArray[np.int32]]:
    """Returns the distinct words in order, where the entries of each begin, and these."""
    every = WORDS_AND_ENDS.findall(END.join([*texts, ""]))
    words = sorted(set(every) - {END})
    numbers = {word: number for number, word in enumerate(words)} | {END: -1}
    number = np.fromiter((numbers[word] for word in every), dtype=np.int64, count=len(every))
    is_word = number >= 0
    entry = np.cumsum(~is_word, dtype=np.int32)[is_word]
    number = number[is_word]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=len(words)))])
    return words, offsets, entry[np.argsort(number, kind="stable")]


def _index_pieces(words: list[str], lengths: Numbers) -> tuple[Numbers, npt.NDArray[np.int32]]:
    """Returns where the words of each piece begin, and these."""
    pieces = _pieces(words)
    order = np.argsort(pieces, kind="stable")  # of short integers: quick, by their digits
    offsets = np.concatenate([[0], np.cumsum(np.bincount(pieces, minlength=NUM_PIECES))])
    return offsets, np.repeat(np.arange(len(words), dtype=np.int32), lengths)[order]


def _pieces(words: Sequence[str]) -> npt.NDArray[np.uint16]:
    """Returns a number for each letter with its neighbours, where a word's ends count as such."""
    joined = END.join(["", *words, END]).encode("utf-32-le", "surrogatepass")
    letters = np.frombuffer(joined, dtype=np.uint32)
    mixed = letters[:-2] * np.uint32(961) + letters[1:-1] * np.uint32(31) + letters[2:]
    numbers = ((mixed * np.uint32(2654435769)) >> np.uint32(16)).astype(np.uint16)
    return numbers[letters[1:-1] != 0]
