"""How fast and how large the simulated engine is: presets, and profile files with the same fields.

The step time is a line through points (running requests, milliseconds), straight between them and beyond them. The `h200-*` presets have
two points each, one per measured load; everything between and beyond is interpolation.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec

from orchestrator.errors import UserError

Positive: TypeAlias = Annotated[int, msgspec.Meta(gt=0)]
Rate: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
Point: TypeAlias = tuple[Positive, Annotated[float, msgspec.Meta(gt=0)]]


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A simulated engine. Everything has a default but the speed of its steps."""

    name: str
    note: str = ""
    decode_step_ms: Annotated[tuple[Point, ...], msgspec.Meta(min_length=1)]
    """(requests in the batch, milliseconds of the step), by rising requests."""
    prefill_tokens_per_s: Annotated[float, msgspec.Meta(gt=0)] = 60_000.0
    """Each prompt token in a step makes it longer by one over this."""
    max_model_len: Positive = 131_072
    max_num_seqs: Positive = 256
    max_num_batched_tokens: Positive = 8_192
    block_size: Positive = 16
    num_gpu_blocks: Positive = 131_072
    prefix_caching: bool = True
    acceptance_rates: tuple[Rate, ...] = ()
    """The share of rounds in which at least 1, 2, … drafts are accepted; empty means no speculation."""
    stream_interval: Positive = 1
    """A chunk is sent when this many tokens are new; the first one and the end are sent at once."""

    def __post_init__(self) -> None:
        if any(after[0] <= before[0] for before, after in pairwise(self.decode_step_ms)):
            raise ValueError("`decode_step_ms` must have rising numbers of requests")
        if any(after > before for before, after in pairwise(self.acceptance_rates)):
            raise ValueError("`acceptance_rates` must not rise: a later draft counts only after the earlier ones")
        if self.num_gpu_blocks * self.block_size < self.max_model_len:
            raise ValueError("`num_gpu_blocks` times `block_size` must hold one request of `max_model_len`")
        if any(self._decode_ms(running) <= 0 for running in (0, self.max_num_seqs)):
            raise ValueError("`decode_step_ms` gives a step without duration at 0 or at `max_num_seqs` requests")

    @property
    def model(self) -> str:
        return f"simulated/{self.name}"

    def decode_table_s(self) -> list[float]:
        """Seconds of a step by the number of requests that decode in it, from 0 to `max_num_seqs`."""
        return [self._decode_ms(running) / 1000 for running in range(self.max_num_seqs + 1)]

    def _decode_ms(self, running: int) -> float:
        points = self.decode_step_ms
        if len(points) == 1:
            return points[0][1]
        left, right = next((pair for pair in pairwise(points) if running <= pair[1][0]), (points[-2], points[-1]))
        return left[1] + (running - left[0]) * (right[1] - left[1]) / (right[0] - left[0])


MTP3 = (0.80, 0.62, 0.48)
MTP1 = (0.80,)

MEASURED: dict[str, tuple[int, int, tuple[float, ...]]] = {
    "h200-0-stock": (3_733, 8_639, ()),
    "h200-1-mtp3": (5_167, 10_522, MTP3),
    "h200-2-async": (5_535, 14_370, MTP3),
    "h200-3-flashinfer": (6_356, 13_027, MTP3),
    "h200-4-mtp1": (4_869, 13_784, MTP1),
    "h200-5-fp16-state": (4_209, 13_342, MTP1),
}
"""Output tokens per second at 32 and at 256 requests, and the acceptance that was imposed: vLLM 0.26.0 on one H200, the shape of
Nemotron-3-Nano-30B-A3B with an MTP layer, random weights, 512 tokens in and 512 out, closed loop, prefix cache off, one run each."""


def fitted(name: str) -> Profile:
    """The preset that gives the measured tokens per second at 32 and at 256.

    With every output token comes one prompt token (512 in, 512 out), so a second holds `rate / (n a)` steps of `n` requests and `a` tokens each,
    and `rate` prompt tokens: step(n) = n a (1 / rate - 1 / prefill rate). The prefill rate was not measured; 60,000 tokens/s is assumed.
    """
    at_32, at_256, acceptance = MEASURED[name]
    per_step, prefill = tokens_per_step(acceptance, output_tokens=512), 60_000.0
    return Profile(
        name=name,
        note="fitted to one H200 at 32 and 256 requests; in between is interpolation",
        decode_step_ms=tuple((n, 1000 * n * per_step * (1 / rate - 1 / prefill)) for n, rate in ((32, at_32), (256, at_256))),
        prefill_tokens_per_s=prefill,
        prefix_caching=False,
        acceptance_rates=acceptance,
    )


def tokens_per_step(acceptance: tuple[float, ...], *, output_tokens: int) -> float:
    """Tokens of one request per step it is in: less than 1 + the accepted drafts.

    The first token comes with the prompt's step, alone, and the last round overshoots the end by E[X²] / 2E[X] - 1/2 tokens (renewal theory, X the
    tokens of a round).
    """
    mean = 1 + sum(acceptance)
    square = 1 + sum(rate * (2 * accepted + 1) for accepted, rate in enumerate(acceptance, start=1))
    rounds = (output_tokens - 1 + square / (2 * mean) - 0.5) / mean
    return output_tokens / (1 + rounds)


DEMO = Profile(
    name="demo",
    note="invented: 32 agents see about 90 tokens/s each",
    decode_step_ms=((1, 8.1), (32, 11.0), (256, 32.0)),
    prefill_tokens_per_s=60_000.0,
)
PLAIN_12K = Profile(
    name="plain-12k",
    note="invented, for benchmarks: 256 streams get 12,000 tokens/s, one token a chunk",
    decode_step_ms=((1, 4.0), (256, 256 / 12.0)),
    prefill_tokens_per_s=2_000_000.0,
    max_num_batched_tokens=32_768,
    num_gpu_blocks=524_288,
)


def preset_names() -> list[str]:
    return [DEMO.name, PLAIN_12K.name, *MEASURED]


def load_profile(name_or_file: str | None) -> Profile:
    """A preset by its name, or a TOML or JSON file. None is `demo`. Raises UserError, naming file and key."""
    if name_or_file in MEASURED:
        return fitted(name_or_file)
    invented = {preset.name: preset for preset in (DEMO, PLAIN_12K)}
    if (found := invented.get(name_or_file or DEMO.name)) is not None:
        return found
    path = Path(name_or_file or "")
    if not path.is_file():
        raise UserError(f"no preset or profile file `{name_or_file}`", hint=f"presets: {', '.join(preset_names())}")
    try:
        if path.suffix == ".json":
            return msgspec.json.decode(path.read_bytes(), type=Profile)
        return msgspec.toml.decode(path.read_bytes(), type=Profile)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as bad:
        raise UserError(f"{path}: {bad}", hint="the fields of a profile are listed in docs/simulator.md") from bad
