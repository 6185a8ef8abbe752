"""KV blocks with reference counts and a prefix cache, after vLLM's block pool.

A block that nobody refers to keeps its content, and its hash, until it is needed for something else; the one longest unused goes first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence


class BlockPool:
    def __init__(self, blocks: int) -> None:
        self.total = blocks
        self._untouched = blocks
        """Blocks below this number were never used: they are handed out before anything cached is thrown away."""
        self._free: OrderedDict[int, None] = OrderedDict()
        self._references: dict[int, int] = {}
        self._by_hash: dict[int, int] = {}
        self._hash_of: dict[int, int] = {}

    @property
    def used(self) -> int:
        return len(self._references)

    @property
    def available(self) -> int:
        return self.total - len(self._references)

    def usage(self) -> float:
        """0 to 1. Blocks that are only cached do not count, as in vLLM."""
        return len(self._references) / self.total

    def cached_prefix(self, hashes: Sequence[int]) -> list[int]:
        """The blocks that hold the longest cached prefix. They are not taken yet."""
        found: list[int] = []
        for value in hashes:
            if (block := self._by_hash.get(value)) is None:
                break
            found.append(block)
        return found

    def idle(self, blocks: Sequence[int]) -> int:
        """How many of these `take` would remove from what is available."""
        return sum(block not in self._references for block in blocks)

    def take(self, blocks: Sequence[int]) -> None:
        """One more reference to blocks that are cached."""
        for block in blocks:
            self._free.pop(block, None)
            self._references[block] = self._references.get(block, 0) + 1

    def allocate(self, count: int) -> list[int]:
        """`count` empty blocks; the caller has seen that so many are available."""
        return [self._allocate_one() for _ in range(count)]

    def _allocate_one(self) -> int:
        if self._untouched:
            self._untouched -= 1
            block = self._untouched
        else:
            block, _ = self._free.popitem(last=False)
            if (value := self._hash_of.pop(block, None)) is not None:
                del self._by_hash[value]
        self._references[block] = 1
        return block

    def register(self, block: int, value: int) -> None:
        """The block now holds the prefix with this hash. The first block to hold it keeps the name."""
        if value not in self._by_hash and block not in self._hash_of:
            self._by_hash[value] = block
            self._hash_of[block] = value

    def release(self, blocks: Sequence[int]) -> None:
        """Gives back one reference each, the last block first, so that a prefix outlives what follows it."""
        for block in reversed(blocks):
            left = self._references[block] - 1
            if left:
                self._references[block] = left
            else:
                del self._references[block]
                self._free[block] = None
