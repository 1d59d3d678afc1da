"""The three loops and agents of the user's own as agent loops of verl: rows in, an output for each conversation out."""

# verl is largely untyped; values that reach our own code are typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false
from __future__ import annotations

from functools import lru_cache
from itertools import count
from typing import Any, ClassVar

from omegaconf import OmegaConf
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput
from verl.workers.rollout.replica import TokenOutput

from memloop.chunking import TokenizerSplitter
from trainer.chat_template import ChatTemplate
from trainer.data.rows import AgentName
from trainer.rollout.agent_function import FunctionSession, load_function, run_function
from trainer.rollout.conversations import AgentModel
from trainer.rollout.cpu import ROLLOUT
from trainer.rollout.recording import Generated, RecordingModel
from trainer.rollout.sessions import LoopRunner, Session
from trainer.rollout.settings import LoopSettings


class VerlTokens:
    """A TokenEngine over verl's servers, with verl's decoding and the loop's limit, for one ``session``.

    Our CPU engine draws by the name of each ``call``, so that a repeated step draws the same tokens. verl does not
    report why a reply ended. A reply at its limit was truncated unless its last token is among ``ends``.
    """

    def __init__(
        self,
        servers: Any,
        sampling: dict[str, Any],
        *,
        session: str,
        names_calls: bool,
        max_reply_tokens: int,
        ends: frozenset[int],
    ) -> None:
        self._servers = servers
        self._sampling = sampling
        self._max_reply_tokens = max_reply_tokens
        self._ends = ends
        self._session = session
        self._names_calls = names_calls
        self._calls = count()

    async def generate(self, prompt_ids: list[int], *, max_tokens: int) -> Generated:
        """See ``TokenEngine``. Raises ValueError when the profile's replies are longer than the run's rows."""
        if max_tokens > self._max_reply_tokens:
            raise ValueError(
                f"the profile allows replies of {max_tokens} tokens: data.max_response_length={self._max_reply_tokens}"
            )
        sampling = {**self._sampling, "max_tokens": max_tokens}
        if self._names_calls:
            sampling["call"] = f"{self._session}_{next(self._calls)}"
        output: TokenOutput = await self._servers.generate(
            self._session, prompt_ids=prompt_ids, sampling_params=sampling
        )
        made = tuple(output.token_ids)
        return Generated(
            token_ids=made,
            log_probs=tuple(output.log_probs or ()),
            truncated=len(made) >= max_tokens and made[-1] not in self._ends,
            version=output.extra_fields.get("global_steps") or 0,
        )


class _Agent(AgentLoopBase):
    def template(self) -> ChatTemplate:
        tokenizer: Any = self.tokenizer
        return ChatTemplate(tokenizer)

    def engine(self, sampling_params: dict[str, Any], row: dict[str, Any]) -> VerlTokens:
        tokenizer: Any = self.tokenizer
        return VerlTokens(
            self.server_manager,
            sampling_params,
            session=f"{row['uid']}_{row['session_id']}",
            names_calls=self.rollout_config.name == ROLLOUT,
            max_reply_tokens=self.rollout_config.response_length,
            ends=frozenset(tokenizer.all_special_ids),
        )


class LoopAgent(_Agent):
    """Runs one session per instance."""

    loop_name: ClassVar[AgentName]

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> Any:
        """Return a list of AgentLoopOutput: the session's turns, each a conversation with the session's reward.

        verl's V1 trainer accepts such a list, though its base class declares one output.
        """
        model = RecordingModel(
            self.engine(sampling_params, row),
            self.template(),
            max_prompt_tokens=self.rollout_config.prompt_length,
        )
        runner = _runner(OmegaConf.to_yaml(self.config.memloop), self.tokenizer)
        return _outputs(await runner.run(self.loop_name, row, model))


class FunctionAgent(_Agent):
    """Runs the recipe's ``memloop.agent`` once per instance."""

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> Any:
        """Return a list of AgentLoopOutput, one for each conversation of the agent."""
        settings = self.config.memloop
        model = AgentModel(
            self.engine(sampling_params, row),
            self.template(),
            max_prompt_tokens=self.rollout_config.prompt_length,
            max_calls=settings.max_calls,
        )
        longest = self.rollout_config.response_length
        session = await run_function(load_function(settings.agent), row, model, max_response_tokens=longest)
        return _conversations(session)


class MemAgentLoop(LoopAgent):
    """Reads a document once and answers."""

    loop_name = "memagent"


class MemRereadLoop(LoopAgent):
    """Reads, rereads for missing facts, and answers."""

    loop_name = "memreread"


class MemReaderLoop(LoopAgent):
    """Decides what to remember."""

    loop_name = "memreader"


@lru_cache(maxsize=4)
def _runner(settings_yaml: str, tokenizer: Any) -> LoopRunner:
    settings = LoopSettings.model_validate(OmegaConf.to_container(OmegaConf.create(settings_yaml)))
    splitter = TokenizerSplitter(tokenizer.backend_tokenizer.to_str())
    return LoopRunner(settings.loaded(), splitter, settings)


def _outputs(session: Session) -> list[AgentLoopOutput]:
    """Convert the turns; verl copies the last output's reward and ``reward_extra_info`` to all."""
    earned = {"acc": session.reward, "truncated": session.truncated, "nodes": session.nodes}
    return [
        AgentLoopOutput(
            prompt_ids=list(turn.prompt_ids),
            response_ids=list(turn.reply.token_ids),
            response_mask=[1] * len(turn.reply.token_ids),
            response_logprobs=list(turn.reply.log_probs),
            reward_score=session.reward,
            num_turns=len(session.turns),
            metrics=AgentLoopMetrics(),
            extra_fields={
                "reward_extra_info": earned,
                "min_global_steps": turn.reply.version,
                "max_global_steps": turn.reply.version,
                "kind": facts.kind,
                "step": facts.step,
                "change": facts.change,
                "nodes": session.nodes,
                "final": turn is session.turns[-1],
                "limit": turn.prompt.sampling.max_tokens,
                "truncated": turn.reply.truncated,
            },
        )
        for turn, facts in zip(session.turns, session.facts, strict=True)
    ]


def _conversations(session: FunctionSession) -> list[AgentLoopOutput]:
    """Convert an agent's rows; the same fields as of a loop's turns."""
    rows = session.conversations
    earned = {"acc": session.reward, "truncated": sum(row.truncated for row in rows), "nodes": 1}
    return [
        AgentLoopOutput(
            prompt_ids=list(row.prompt_ids),
            response_ids=list(row.response_ids),
            response_mask=list(row.mask),
            response_logprobs=list(row.log_probs),
            reward_score=session.reward,
            num_turns=len(rows),
            metrics=AgentLoopMetrics(),
            extra_fields={
                "reward_extra_info": earned,
                "min_global_steps": row.versions[0],
                "max_global_steps": row.versions[1],
                "kind": "",
                "step": None,
                "nodes": 1,
                "final": row is rows[-1],
                "limit": row.limit,
                "truncated": row.truncated,
                "credit": credit,
            },
        )
        for row, credit in zip(rows, session.credits, strict=True)
    ]
