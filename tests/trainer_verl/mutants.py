"""Changes a sign, a mask, a mean or a share in each objective, and expects a test to fail: ``make test-mutants``.

Every mutant is one replacement in a copy of the trainer, and as many are tried at once as there are cores. The tests of
the objectives run on it; a mutant that they pass is printed as alive, and the exit status is 1.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
ADVANTAGES: Final = ("tests/trainer/test_objectives.py", "tests/trainer/test_rollout_turns.py")
LOSSES: Final = ("tests/trainer_verl/test_objective_losses.py",)
FILTER: Final = ("tests/trainer_verl/test_group_filter.py",)
_PYTEST: Final = (
    *(sys.executable, "-m", "pytest", "-x", "-q", "-c", "/dev/null", "--rootdir=.", "-p", "no:cacheprovider"),
    *("--confcutdir=tests/trainer_verl", "--import-mode=importlib", "-o", "asyncio_mode=auto"),
)
_OBJECTIVES, _ROLLOUT, _PARTS = "trainer/trainer/objectives", "trainer/trainer/rollout", "trainer/recipes/parts"


@dataclass(frozen=True)
class Mutant:
    """One replacement of a text that occurs in the file, and the tests that must notice it."""

    file: str
    before: str
    after: str
    tests: tuple[str, ...] = ADVANTAGES

    def __str__(self) -> str:
        return f"{self.file}: {self.before!r} -> {self.after!r}"


MUTANTS: Final = (
    # statistics within groups
    Mutant(f"{_OBJECTIVES}/groups.py", "values - _mean(", "values + _mean("),
    Mutant(f"{_OBJECTIVES}/groups.py", "return total / count", "return total"),
    Mutant(f"{_OBJECTIVES}/groups.py", "(count - 1).clamp(min=1)", "count"),
    Mutant(f"{_OBJECTIVES}/groups.py", "off.square()", "off.abs()"),
    Mutant(f"{_OBJECTIVES}/groups.py", ").sqrt() + EPSILON", ") + EPSILON"),
    Mutant(f"{_OBJECTIVES}/groups.py", "+ EPSILON", "* EPSILON"),
    # rows and rollouts
    Mutant(f"{_OBJECTIVES}/rollouts.py", "unsqueeze(-1) * self.mask", "unsqueeze(-1) * torch.ones_like(self.mask)"),
    Mutant(f"{_OBJECTIVES}/rollouts.py", "cls(rewards[first], groups[first]", "cls(rewards, groups"),
    # GRPO, DAPO, Dr. GRPO, GSPO
    Mutant(f"{_OBJECTIVES}/grpo.py", "z_scores if normalise_by_std", "z_scores if not normalise_by_std"),
    Mutant(f"{_OBJECTIVES}/grpo.py", "over_tokens(of_group", "over_tokens(-of_group"),
    Mutant(f"{_OBJECTIVES}/published.py", "chosen if fixed is None else fixed", "chosen"),
    Mutant(f"{_OBJECTIVES}/published.py", "deviation=True, informative", "deviation=False, informative"),
    Mutant(f"{_OBJECTIVES}/published.py", "deviation=False)", "deviation=True)"),
    Mutant(f"{_OBJECTIVES}/published.py", 'deviation=True, loss="gspo"', 'deviation=False, loss="gspo"'),
    Mutant(f"{_PARTS}/grpo.yaml", "seq-mean-token-mean", "token-mean", LOSSES),
    Mutant(f"{_PARTS}/grpo.yaml", "normalise_by_std: true", "normalise_by_std: false", LOSSES),
    Mutant(f"{_PARTS}/dapo.yaml", "loss_agg_mode: token-mean", "loss_agg_mode: seq-mean-token-mean", LOSSES),
    Mutant(f"{_PARTS}/dapo.yaml", "clip_ratio_high: 0.28", "clip_ratio_high: 0.2", LOSSES),
    Mutant(f"{_PARTS}/dr-grpo.yaml", "seq-mean-token-sum-norm", "seq-mean-token-mean", LOSSES),
    Mutant(f"{_PARTS}/dr-grpo.yaml", "${data.max_response_length}", "4", LOSSES),
    Mutant(f"{_PARTS}/gspo.yaml", "loss_mode: gspo", "loss_mode: vanilla", LOSSES),
    Mutant(f"{_PARTS}/gspo.yaml", "seq-mean-token-mean", "token-mean", LOSSES),
    Mutant(f"{_PARTS}/gspo.yaml", "clip_ratio_low: 0.0003", "clip_ratio_low: 0.0004", LOSSES),
    Mutant(f"{_PARTS}/gspo.yaml", "clip_ratio_high: 0.0004", "clip_ratio_high: 0.0003", LOSSES),
    Mutant(f"{_PARTS}/memagent.yaml", "clip_ratio_high: 0.2", "clip_ratio_high: 0.3", LOSSES),
    Mutant(f"{_PARTS}/gpus.yaml", "loss_agg_mode: token-mean", "loss_agg_mode: seq-mean-token-mean", LOSSES),
    Mutant(f"{_PARTS}/gpus.yaml", "clip_ratio_c: 3.0", "clip_ratio_c: 4.0", LOSSES),
    # DAPO's lengths and groups
    Mutant(f"{_OBJECTIVES}/dapo.py", "return -((lengths", "return ((lengths"),
    Mutant(f"{_OBJECTIVES}/dapo.py", "- (1 - share) * limits", "- share * limits"),
    Mutant(f"{_OBJECTIVES}/dapo.py", "/ (share * limits)", "/ limits"),
    Mutant(f"{_OBJECTIVES}/dapo.py", ".clamp(0.0, 1.0)", ".clamp(min=0.0)"),
    Mutant(f"{_OBJECTIVES}/dapo.py", "total / rollouts.turns.clamp(min=1)", "total"),
    Mutant(f"{_OBJECTIVES}/dapo.py", "rollouts.rewards + total", "rollouts.rewards - total"),
    Mutant(f"{_OBJECTIVES}/dapo.py", "mask * (~truncated)", "mask * (truncated)"),
    Mutant(f"{_OBJECTIVES}/dapo.py", "most - dropped_before", "most"),
    Mutant(f"{_ROLLOUT}/group_filter.py", "dropped_before=rewards.total()", "dropped_before=0", FILTER),
    Mutant(f"{_ROLLOUT}/group_filter.py", "2 * len(chosen)", "len(chosen)", FILTER),
    Mutant(
        f"{_ROLLOUT}/group_filter.py",
        "sorted(held - alike.keys()) + sorted(held & alike.keys())",
        "sorted(held)",
        FILTER,
    ),
    Mutant(f"{_ROLLOUT}/group_filter.py", "set(groups[count:])", "set()", FILTER),
    Mutant(f"{_ROLLOUT}/group_filter.py", "refill(min(prompts,", "refill(max(prompts,", FILTER),
    Mutant(f"{_ROLLOUT}/group_filter.py", "SURPLUS: -missing", "SURPLUS: missing", FILTER),
    # amortised
    Mutant(f"{_OBJECTIVES}/amortised.py", "/ rollouts.turns\n", "\n"),
    Mutant(f"{_OBJECTIVES}/amortised.py", "z_scores if normalise_by_std", "z_scores if not normalise_by_std"),
    Mutant(f"{_OBJECTIVES}/amortised.py", "over_tokens(each) * amortised_mask", "over_tokens(-each) * amortised_mask"),
    Mutant(f"{_OBJECTIVES}/amortised.py", "mask * (~final)", "mask * final"),
    Mutant(f"{_OBJECTIVES}/amortised.py", "mask if train_final", "mask if not train_final"),
    Mutant("trainer/recipes/memagent-slime-7b.yaml", "train_final: false", "train_final: true", LOSSES),
    Mutant("trainer/recipes/memagent-slime-7b.yaml", "normalise_by_std: true", "normalise_by_std: false", LOSSES),
    # ReA-GRPO
    Mutant(f"{_OBJECTIVES}/rea_grpo.py", "(1 - alpha) * outcome", "outcome"),
    Mutant(f"{_OBJECTIVES}/rea_grpo.py", "+ alpha * step", "- alpha * step"),
    Mutant(f"{_OBJECTIVES}/rea_grpo.py", "+ alpha * step", "+ alpha * alpha * step"),
    Mutant(f"{_OBJECTIVES}/rea_grpo.py", "= _z(-reads[right])", "= _z(reads[right])"),
    Mutant(f"{_OBJECTIVES}/rea_grpo.py", "= _z(reads[wrong])", "= _z(-reads[wrong])"),
    Mutant(f"{_OBJECTIVES}/rea_grpo.py", "torch.softmax(-reads[right]", "torch.softmax(reads[right]"),
    Mutant(f"{_OBJECTIVES}/rea_grpo.py", "-torch.softmax(-reads[wrong]", "torch.softmax(-reads[wrong]"),
    Mutant(f"{_OBJECTIVES}/rea_grpo.py", "rewards > CORRECT_ABOVE", "rewards >= 0"),
    Mutant(f"{_OBJECTIVES}/rea_grpo.py", "CORRECT_ABOVE = 0.9", "CORRECT_ABOVE = 0.3"),
    Mutant(f"{_OBJECTIVES}/rea_grpo.py", "ALPHA = 0.05", "ALPHA = 0.5", LOSSES),
    Mutant(f"{_OBJECTIVES}/rea_grpo.py", "(int(groups[row]), kinds[row])", "(int(groups[row]), 0)"),
    Mutant(f"{_OBJECTIVES}/rea_grpo.py", "(int(groups[row]), kinds[row])", "(0, kinds[row])"),
    Mutant(f"{_OBJECTIVES}/step_rewards.py", "word_recall(after, golds) -", "word_recall(after, golds) +"),
    Mutant(f"{_OBJECTIVES}/step_rewards.py", "REPEATED = -1.0", "REPEATED = 1.0"),
)


def main() -> int:
    """Try every mutant, or those whose description contains the argument; return the exit status."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    with _copy() as unchanged:
        if not _passes(sorted({test for mutant in MUTANTS for test in mutant.tests}), unchanged):
            raise SystemExit("the tests fail without any mutant")
    chosen = [mutant for mutant in MUTANTS if wanted in str(mutant)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        alive = len(chosen) - sum(pool.map(_killed, chosen))
    print(f"{alive} mutants are alive")
    return 1 if alive else 0


@contextmanager
def _copy() -> Iterator[Path]:
    left_out = shutil.ignore_patterns("__pycache__", "node_modules")
    with tempfile.TemporaryDirectory() as folder:
        for part in ("trainer", "tests", "services/inference/models"):
            shutil.copytree(ROOT / part, Path(folder, part), ignore=left_out)
        yield Path(folder)


def _killed(mutant: Mutant) -> bool:
    """Run the mutant's tests in a copy of its own."""
    with _copy() as copy:
        file = copy / mutant.file
        text = file.read_text("utf-8")
        if mutant.before not in text:
            raise SystemExit(f"{mutant}: the text is not there any more")
        file.write_text(text.replace(mutant.before, mutant.after), "utf-8")
        killed = not _passes(mutant.tests, copy)
    print("killed" if killed else "ALIVE ", mutant, flush=True)
    return killed


def _passes(tests: Sequence[str], copy: Path) -> bool:
    """Raises CalledProcessError when pytest itself fails, which is neither."""
    done = subprocess.run([*_PYTEST, *tests], cwd=copy, env=_environment(copy), capture_output=True, check=False)
    if done.returncode not in (0, 1):
        done.check_returncode()
    return done.returncode == 0


def _environment(copy: Path) -> dict[str, str]:
    first = f"{copy}:{copy / 'trainer'}"  # before the workspace's own
    return {**os.environ, "PYTHONPATH": first, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}


if __name__ == "__main__":
    sys.exit(main())
