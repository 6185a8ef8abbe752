"""How an answer is written: chunks of a stream, and whole documents.

A chunk is put together from bytes: its frame is made once per request, and only the text of the tokens is encoded each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from orchestrator.serving.sim.reply import Piece, PieceKind

encode = msgspec.json.encode
TEXTS: tuple[PieceKind, ...] = ("reasoning", "content")


class Frames(Protocol):
    """How one endpoint writes an answer."""

    def opening(self, usage: bytes) -> bytes: ...
    def choices(self, pieces: Sequence[Piece], finish_reason: str | None) -> bytes: ...
    def document(self, pieces: Sequence[Piece], finish_reason: str | None, usage: bytes) -> bytes: ...
    def event(self, choices: bytes, usage: bytes = b"") -> bytes: ...


class ChatFrames:
    def __init__(self, *, request_id: str, created: int, model: str, fingerprint: str) -> None:
        self._id = request_id
        tail = b',"created":%d,"model":%b,"system_fingerprint":%b,"choices":' % (created, encode(model), encode(fingerprint))
        self._head = b'data: {"id":%b,"object":"chat.completion.chunk"' % encode(request_id) + tail
        self._document_head = b'{"id":%b,"object":"chat.completion"' % encode(request_id) + tail

    def opening(self, usage: bytes) -> bytes:
        return self.event(_chat_choice(b'{"role":"assistant","content":""}', None), usage)

    def choices(self, pieces: Sequence[Piece], finish_reason: str | None) -> bytes:
        return _chat_choice(self._delta(pieces), finish_reason)

    def event(self, choices: bytes, usage: bytes = b"") -> bytes:
        return b'%b%b,"usage":%b}\n\n' % (self._head, choices, usage) if usage else b"%b%b}\n\n" % (self._head, choices)

    def document(self, pieces: Sequence[Piece], finish_reason: str | None, usage: bytes) -> bytes:
        message: dict[str, object] = {"role": "assistant", "content": _joined(pieces, "content") or None}
        if reasoning := _joined(pieces, "reasoning"):
            message["reasoning"] = reasoning
        message["tool_calls"] = [
            self._call(piece, "".join(p.text for p in pieces if p.kind == "arguments" and p.call == piece.call))
            for piece in pieces
            if piece.kind == "call"
        ]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason, "stop_reason": None}
        return b'%b%b,"usage":%b}' % (self._document_head, encode([choice]), usage)

    def _delta(self, pieces: Sequence[Piece]) -> bytes:
        if len(pieces) == 1 and pieces[0].kind == "content":
            return b'{"content":%b}' % encode(pieces[0].text)
        delta: dict[str, object] = {}
        for kind in TEXTS:
            if text := _joined(pieces, kind):
                delta[kind] = text
        if calls := self._call_deltas(pieces):
            delta["tool_calls"] = calls
        return encode(delta)

    def _call_deltas(self, pieces: Sequence[Piece]) -> list[dict[str, object]]:
        """One entry per call that these tokens belong to; the one that opens a call carries its id and name."""
        deltas: list[dict[str, object]] = []
        for index in sorted({piece.call for piece in pieces if piece.kind in ("call", "arguments")}):
            arguments = "".join(piece.text for piece in pieces if piece.kind == "arguments" and piece.call == index)
            opened = next((piece for piece in pieces if piece.kind == "call" and piece.call == index), None)
            if opened is None:
                deltas.append({"index": index, "function": {"arguments": arguments}})
            else:
                deltas.append({"index": index, **self._call(opened, arguments)})
        return deltas

    def _call(self, opened: Piece, arguments: str) -> dict[str, object]:
        call_id = f"chatcmpl-tool-{self._id.removeprefix('chatcmpl-')}-{opened.call}"
        return {"id": call_id, "type": "function", "function": {"name": opened.text, "arguments": arguments}}


class CompletionFrames:
    def __init__(self, *, request_id: str, created: int, model: str, fingerprint: str) -> None:
        head = b'{"id":%b,"object":"text_completion","created":%d,"model":%b,"system_fingerprint":%b,"choices":'
        self._head = head % (encode(request_id), created, encode(model), encode(fingerprint))

    def opening(self, usage: bytes) -> bytes:
        return b""

    def choices(self, pieces: Sequence[Piece], finish_reason: str | None) -> bytes:
        text = pieces[0].text if len(pieces) == 1 else _joined(pieces, "content")
        return b'[{"index":0,"text":%b,"logprobs":null,"finish_reason":%b,"stop_reason":null}]' % (encode(text), encode(finish_reason))

    def event(self, choices: bytes, usage: bytes = b"") -> bytes:
        return b'data: %b%b,"usage":%b}\n\n' % (self._head, choices, usage or b"null")

    def document(self, pieces: Sequence[Piece], finish_reason: str | None, usage: bytes) -> bytes:
        return b'%b%b,"usage":%b}' % (self._head, self.choices(pieces, finish_reason), usage)


def _chat_choice(delta: bytes, finish_reason: str | None) -> bytes:
    return b'[{"index":0,"delta":%b,"logprobs":null,"finish_reason":%b}]' % (delta, encode(finish_reason))


def _joined(pieces: Sequence[Piece], kind: PieceKind) -> str:
    return "".join(piece.text for piece in pieces if piece.kind == kind)
