"""What one endpoint takes of the request's optional parts, learnt from its refusals."""

from __future__ import annotations

from dataclasses import dataclass

from agents.wire import Json


@dataclass(slots=True)
class Dialect:
    """Begins with all that vLLM takes; each refusal that names a part takes it away for good."""

    continuous_usage: bool = True
    usage: bool = True
    max_tokens_name: str = "max_tokens"

    def options(self, max_tokens: int | None) -> Json:
        options: Json = {}
        if self.usage:
            options["stream_options"] = (
                {"include_usage": True, "continuous_usage_stats": True} if self.continuous_usage else {"include_usage": True}
            )
        if max_tokens is not None:
            options[self.max_tokens_name] = max_tokens
        return options

    def learn(self, refusal: str) -> bool:
        """True when the refusal of a request names a part that is now left out: the request is worth sending again."""
        if self.continuous_usage and "continuous_usage_stats" in refusal:
            self.continuous_usage = False
        elif self.usage and ("stream_options" in refusal or "include_usage" in refusal):
            self.usage = False
        elif self.max_tokens_name == "max_tokens" and "max_completion_tokens" in refusal and "instead" in refusal:
            self.max_tokens_name = "max_completion_tokens"
        else:
            return False
        return True
