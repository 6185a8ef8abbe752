"""The simulated tokenizer: four UTF-8 bytes are a token.

It is exact both ways, needs no vocabulary, and a text's tokens do not depend on what follows it, so a longer prompt keeps the prefix of a
shorter one. A token's id is its bytes as a number, shifted so that shorter tokens (the last of a text) have ids of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from random import Random

TOKEN_BYTES = 4
SHIFTS = (0, 1, 1 + (1 << 8), 1 + (1 << 8) + (1 << 16), 1 + (1 << 8) + (1 << 16) + (1 << 24))
"""The first id of tokens of 0 to 4 bytes."""
VOCABULARY = SHIFTS[TOKEN_BYTES] + (1 << 32)

# Three letters and a blank are one token, so a filled length counts the same when it is tokenized again.
FILLER = (
    "act add age aim air arm art ask bag bar bay bed bit box bus buy can cap car cat cup cut day dog dry due ear eat egg end eye fan far few fit fix "
    "fly fog for fox fun gap gas get hat hen hot ice ink jam jar job joy key kit lab law leg let lid log lot low map mat mix mud net new nut oak odd "
    "oil old one out own pan paw pay pen pet pie pin pit pot put ray red rib row run sad sea set she six sky son sum sun tap tax tea ten the tie tin "
    "tip toe top toy two use van vet war was way web wet who win wit yes zip zoo"
)
WORDS = tuple(FILLER.split())


def count_tokens(text: bytes) -> int:
    return -(-len(text) // TOKEN_BYTES)


def encode(text: bytes) -> list[int]:
    pieces = (text[at : at + TOKEN_BYTES] for at in range(0, len(text), TOKEN_BYTES))
    return [SHIFTS[len(piece)] + int.from_bytes(piece) for piece in pieces]


def decode(tokens: Sequence[int]) -> bytes:
    """Raises ValueError for an id outside the vocabulary."""
    return b"".join(_piece(token) for token in tokens)


def _piece(token: int) -> bytes:
    if not 0 <= token < VOCABULARY:
        raise ValueError(f"token id {token} is outside the vocabulary of {VOCABULARY}")
    length = next(size for size in range(TOKEN_BYTES, -1, -1) if token >= SHIFTS[size])
    return (token - SHIFTS[length]).to_bytes(length)


def split(text: str) -> list[str]:
    """The text of each token, in order. A character that spans two tokens appears whole with the second one, as in a real detokenizer."""
    if text.isascii():
        return [text[at : at + TOKEN_BYTES] for at in range(0, len(text), TOKEN_BYTES)]
    pieces: list[str] = []
    raw, held = text.encode(), b""
    for at in range(0, len(raw), TOKEN_BYTES):
        held += raw[at : at + TOKEN_BYTES]
        whole = held.decode(errors="ignore")
        pieces.append(whole)
        held = held[len(whole.encode()) :]
    return pieces


def words(count: int, draw: Random) -> list[str]:
    """`count` tokens of words that mean nothing."""
    return [word + " " for word in draw.choices(WORDS, k=count)]


def seed_of(*parts: bytes | int | str) -> int:
    """A seed that is the same in every process (the built-in hash is salted)."""
    digest = blake2b(digest_size=8)
    for part in parts:
        digest.update(part if isinstance(part, bytes) else str(part).encode())
        digest.update(b"\0")
    return int.from_bytes(digest.digest())
