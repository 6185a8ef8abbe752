"""Bodies of requests, and errors as vLLM words them."""

from __future__ import annotations

from array import array
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from agents.decoding import NotUnderstood
from agents.decoding import decoded as json_of
from orchestrator.serving.sim.tokens import TOKEN_BYTES, count_tokens

B = TypeVar("B")


class Part(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    text: str = ""


class ChatMessage(msgspec.Struct, frozen=True, kw_only=True):
    role: str
    content: str | list[Part] | None = None
    tool_calls: msgspec.Raw = msgspec.Raw(b"")

    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""

    def was_understood(self) -> bool:
        """Whether all calls of this reply have arguments that could be read.

        A client that was sent others hands them back as they were, or in an object that only says so (`invalid_arguments`).
        """
        try:
            calls = json_of(self.tool_calls or b"[]", list[SentCall])
        except NotUnderstood:  # null, or a shape of another API
            return True
        return all(_is_meant(call.function.arguments) for call in calls)


def _is_meant(arguments: str) -> bool:
    try:
        found = json_of(arguments or "{}")
    except NotUnderstood:
        return False
    return isinstance(found, dict) and "invalid_arguments" not in found


class SentFunction(msgspec.Struct, frozen=True, kw_only=True):
    arguments: str = ""


class SentCall(msgspec.Struct, frozen=True, kw_only=True):
    function: SentFunction = SentFunction()


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    include_usage: bool = False
    continuous_usage_stats: bool = False


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """What both kinds of request share. Fields that change nothing here (temperature, top_p, stop, …) are taken and ignored, as unknown ones are."""

    model: str | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    min_tokens: int = 0
    ignore_eos: bool = False
    seed: int | None = None
    n: int = 1


class ChatBody(Sampling, frozen=True, kw_only=True):
    messages: list[ChatMessage]
    max_completion_tokens: int | None = None
    tools: msgspec.Raw = msgspec.Raw(b"")


class CompletionBody(Sampling, frozen=True, kw_only=True):
    prompt: str | list[int | str | list[int]]


class TokenizeBody(msgspec.Struct, frozen=True, kw_only=True):
    model: str | None = None
    prompt: str | None = None
    messages: list[ChatMessage] | None = None


class DetokenizeBody(msgspec.Struct, frozen=True, kw_only=True):
    tokens: list[int]
    model: str | None = None


class RequestRefusedError(Exception):
    """A request that gets an error body instead of an answer."""

    def __init__(
        self, status: int, message: str, *, kind: str = "BadRequestError", param: str | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.param, self.retry_after_s = status, kind, param, retry_after_s

    def body(self) -> bytes:
        return msgspec.json.encode({"error": {"message": str(self), "type": self.kind, "param": self.param, "code": self.status}})

    def response(self) -> Response:
        headers = {} if self.retry_after_s is None else {"Retry-After": f"{self.retry_after_s:g}"}
        return Response(self.body(), self.status, headers, "application/json")


async def decoded(request: Request, kind: type[B]) -> B:
    """The request's body. Raises RequestRefusedError when it is not what `kind` describes."""
    try:
        return json_of(await request.body(), kind)
    except NotUnderstood as bad:
        raise RequestRefusedError(400, str(bad)) from bad


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """`data` are the tokens' bytes, `token_bytes` for each."""

    data: bytes
    token_bytes: int
    tokens: int

    def block_hashes(self, block_size: int) -> list[int]:
        """One per full block, each over everything before it."""
        width, value, hashes = block_size * self.token_bytes, hash(self.token_bytes), list[int]()
        for at in range(0, len(self.data) - width + 1, width):
            value = hash((value, self.data[at : at + width]))
            hashes.append(value)
        return hashes


def chat_prompt(body: ChatBody) -> Prompt:
    """The tools come first, so that every conversation with the same tools and system prompt shares its beginning."""
    return text_prompt(rendered(body.messages, tools=bytes(body.tools)))


def rendered(messages: list[ChatMessage], *, tools: bytes = b"") -> bytes:
    parts = [b"<|tools|>", tools, b"\n"] if tools else []
    for message in messages:
        parts += [b"<|", message.role.encode(), b"|>", message.text().encode(), bytes(message.tool_calls), b"\n"]
    parts.append(b"<|assistant|>")
    return b"".join(parts)


def completion_prompt(body: CompletionBody) -> Prompt:
    prompt = body.prompt
    if isinstance(prompt, list) and len(prompt) == 1 and not isinstance(prompt[0], int):
        prompt = prompt[0]
    if isinstance(prompt, str):
        return text_prompt(prompt.encode())
    ids = [token for token in prompt if isinstance(token, int)]
    if len(ids) != len(prompt):
        raise RequestRefusedError(400, "The simulated engine takes one prompt per request: a text or a list of token ids.", param="prompt")
    try:
        return Prompt(data=array("q", ids).tobytes(), token_bytes=8, tokens=len(ids))
    except OverflowError as bad:
        raise RequestRefusedError(400, f"Token id out of vocabulary: {bad}", param="prompt") from bad


def text_prompt(data: bytes) -> Prompt:
    return Prompt(data=data, token_bytes=TOKEN_BYTES, tokens=count_tokens(data))


def check_model(asked: str | None, served: str) -> None:
    if asked is not None and asked != served:
        raise RequestRefusedError(404, f"The model `{asked}` does not exist.", kind="NotFoundError", param="model")


def output_limit(body: Sampling, *, max_tokens: int | None, prompt_tokens: int, max_model_len: int) -> int:
    """The most tokens the answer may have: what was asked for, else what the window leaves. Raises RequestRefusedError."""
    if prompt_tokens < 1:
        raise RequestRefusedError(400, "The decoder prompt cannot be empty", param="prompt")
    if body.n != 1:
        raise RequestRefusedError(400, "The simulated engine gives one choice per request: n must be 1.", param="n")
    if max_tokens is not None and max_tokens < 1:
        raise RequestRefusedError(400, f"max_tokens must be at least 1, got {max_tokens}.", param="max_tokens")
    if max_tokens is not None and body.min_tokens > max_tokens:
        raise RequestRefusedError(
            400, f"min_tokens must be less than or equal to max_tokens={max_tokens}, got {body.min_tokens}.", param="min_tokens"
        )
    if body.stream_options is not None and not body.stream:
        raise RequestRefusedError(400, "Stream options can only be defined when `stream=True`.", param="stream_options")
    asked = max_tokens or 0
    if prompt_tokens + max(asked, 1) > max_model_len:
        message = (
            f"This model's maximum context length is {max_model_len} tokens. However, you requested {asked} output tokens and your prompt contains "
            f"at least {prompt_tokens} input tokens, for a total of at least {prompt_tokens + asked} tokens. Please reduce the length of the input "
            f"prompt or the number of requested output tokens. (parameter=input_tokens, value={prompt_tokens})"
        )
        raise RequestRefusedError(400, message, param="input_tokens")
    return max_tokens or max_model_len - prompt_tokens
