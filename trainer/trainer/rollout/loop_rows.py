"""verl's data set without the rows whose first prompt is too long for the run.

A conversation for the memory writer may be longer than ``data.max_prompt_length`` with the profile's words around it. A
cut prompt would differ from the served one, so such a row is dropped, and the number is printed. The reading loops cut
their documents into chunks and need no rule.
"""

# verl and datasets are largely untyped; values that reach our own code are typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportIncompatibleMethodOverride=false
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verl.utils.dataset.rl_dataset import RLHFDataset

from memloop.loops.rendering import conversation_lines
from memloop.ports import Prompt
from memloop.profiles import Profile, load_profile
from trainer.chat_template import ChatTemplate
from trainer.rollout.tasks import DecideTask

_AGENT, _WRITER = "agent_name", "memreader"


def first_prompt(row: Mapping[str, object], profile: Profile) -> Prompt:
    """Return the memory writer's first prompt for the row. Raises pydantic's ValidationError."""
    turns = DecideTask.of_row(row).turns
    return profile.request("memory", profile.render("memory", conversation=conversation_lines(turns, profile.turns)))


class LoopRows(RLHFDataset):
    """Drops and counts the rows that do not fit; see the module."""

    def maybe_filter_out_long_prompts(self, dataframe: Any = None) -> Any:
        """Return the rows that fit; those of other loops all do."""
        named = set(dataframe.unique(_AGENT)) if _AGENT in dataframe.column_names else {self.config.default_loop}
        if _WRITER not in named:
            return dataframe
        profile, template = load_profile(self.config.loop_profile), ChatTemplate(self.tokenizer)

        def fits(row: Mapping[str, object]) -> bool:
            writes = row.get(_AGENT, self.config.default_loop) == _WRITER
            return not writes or len(template.render(first_prompt(row, profile))) <= self.max_prompt_length

        kept = dataframe.filter(fits, desc="Looking for conversations that are too long")
        if dropped := len(dataframe) - len(kept):
            print(f"dropped {dropped} of {len(dataframe)} rows: longer than data.max_prompt_length")
        if not len(kept):
            raise ValueError(f"data.max_prompt_length={self.max_prompt_length}: all {len(dataframe)} rows are longer")
        return kept
