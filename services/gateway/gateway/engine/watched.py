"""Counts and traces what the loops ask of the engine."""

from gateway.engine.spans import loop_call, note_finish, note_usage
from gateway.metrics import Metrics
from memloop.ports import ChatModel, Completion, Prompt
from memloop.wire.errors import DependencyError


class WatchedModel:
    """A ChatModel with metrics and a span around each call. Put it inside a ``Journaled``: replies cost once."""

    def __init__(self, model: ChatModel, metrics: Metrics, *, model_id: str, operation: str) -> None:
        self._model = model
        self._metrics = metrics
        self._model_id = model_id
        self._operation = operation

    async def complete(self, prompt: Prompt) -> Completion:
        """The inner model's reply. Raises what it raises."""
        with loop_call(self._model_id) as call:
            try:
                completion = await self._model.complete(prompt)
            except DependencyError as error:
                self._metrics.count_error(error)
                raise
            usage = completion.usage
            self._metrics.count_tokens("input", self._operation, usage.input_tokens)
            self._metrics.count_tokens("output", self._operation, usage.output_tokens)
            note_usage(call, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
            note_finish(call, (completion.finish_reason,))
        return completion
