"""A read's models: replies are tied to the model that gave them, and the judge's prompts go to the judge."""

from gateway.long_read.plan import JudgedApart, NamedModel, judged_by
from memloop.profiles import load_profile
from tests.fakes.model import ScriptedModel
from tests.memloop.test_journal import DictCheckpoints

PROFILE = load_profile("default")
READ = PROFILE.prompt("read", problem="q", memory="m", section="s")
JUDGE = PROFILE.prompt("judge", question="q", memory="m", query_history="h")


async def test_a_reply_is_found_again_for_its_own_model_alone() -> None:
    checkpoints, models = DictCheckpoints(), {"a": ScriptedModel(["by a"]), "b": ScriptedModel(["by b"])}
    for _ in range(2):
        for model_id, model in models.items():
            reply = await NamedModel(model_id, model).journaled(checkpoints).complete(READ)
            assert reply.content == f"by {model_id}"
    assert {model_id: model.calls for model_id, model in models.items()} == {"a": 1, "b": 1}


async def test_without_checkpoints_the_model_is_asked_each_time() -> None:
    model = ScriptedModel(["one", "two"])
    named = NamedModel("a", model)
    assert [(await named.journaled(None).complete(READ)).content for _ in range(2)] == ["one", "two"]


async def test_only_the_judges_prompts_go_to_the_judge() -> None:
    apart = JudgedApart(ScriptedModel(["read"]), ScriptedModel(["judged"]))
    assert [(await apart.complete(prompt)).content for prompt in (JUDGE, READ)] == ["judged", "read"]


def test_the_judges_prompt_comes_from_its_own_profile() -> None:
    reader, judge = load_profile("section-first"), load_profile("tiny")
    both = judged_by(reader, judge)
    assert both.prompts["judge"] == judge.prompts["judge"] != reader.prompts["judge"]
    assert {name for name in both.prompts if both.prompts[name] != reader.prompts[name]} == {"judge"}
    assert (both.no_history, both.budget, both.ref) == (judge.no_history, reader.budget, reader.ref)
