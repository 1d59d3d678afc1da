"""The evaluation on a Ray cluster of this machine: ``make test-ray``."""

from pathlib import Path

from tests.evaluation.ruler_rig import evaluated, evaluation, means, records_of
from tests.fakes.harbour_engine import HarbourEngine


async def test_ray_gives_the_records_that_one_process_gives(tmp_path: Path) -> None:
    async with HarbourEngine().running() as engine:
        here = evaluation(tmp_path / "here", [engine.url])
        spread = evaluation(tmp_path / "ray", [engine.url], ray="local")
        assert means(await evaluated(spread)) == means(await evaluated(here))
    answers = [{record.key: (record.answer, record.calls) for record in records_of(run)} for run in (here, spread)]
    assert answers[0] == answers[1]
    assert len(answers[0]) == 9


async def test_a_task_whose_engine_fails_goes_on_at_another(tmp_path: Path) -> None:
    async with HarbourEngine(fails_from=3).running() as failing, HarbourEngine().running() as whole:
        run = evaluation(tmp_path, [failing.url, whole.url], ray="local")
        found = await evaluated(run)
        calls = len(whole.bodies)
    assert found["failed"] == 0
    assert {record.engine for record in records_of(run)} == {whole.url}
    assert sum(record.calls for record in records_of(run)) == calls + 2
