"""``make parity``: made-up checkouts in the place of the published ones, in their own process, beside our loops."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.parity.__main__ import TOKENIZER, compared
from benchmarks.parity.compare import compare
from benchmarks.parity.items import Project, Reply, items_of
from benchmarks.parity.scripted_model import Request, ScriptedModel
from benchmarks.parity.upstream import NoUpstream, Upstream
from memloop.wire.chat import Json
from tests.fakes.processes import clean_environment
from tests.fakes.published_sources import MEMAGENT, MEMREREAD_API, with_light_tokenizer, write_memagent, write_memreread

ROOT = Path(__file__).parents[2]
PATIENCE_S = 240.0
"""Importing transformers takes long on a busy machine."""


def run(checkout: Path, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.parity", "--upstream", str(checkout), *arguments],
        cwd=ROOT,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def rows(table: str) -> dict[str, list[str]]:
    """The cells of all tables by their first column; later tables win."""
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in table.splitlines() if line.startswith("│")]
    return {first: rest for first, *rest in cells}


def test_all_requests_of_both_of_memagents_loops_are_equal_or_named(tmp_path: Path) -> None:
    status, out, err = run(write_memagent(tmp_path / "checkout"))
    assert status == 0, out + err
    demo, title, table = out.partition("memagent-table beside Memloop")
    assert title
    assert (
        rows(demo)
        == rows(table)
        == {
            "plain": ["4", "4", "4", "thinking off"],
            "cut": ["4", "4", "4", "thinking off"],
            "blanks": ["4", "4", "4", "thinking off"],
            "thinking": ["4", "4", "4", "thinking off"],
            "foreign": ["2", "2", "2", "thinking off"],
            "tags": ["2", "2", "1", "thinking off, tags"],
            "edges": ["2", "2", "0", "thinking off, edges"],
            "decomposed": ["2", "2", "2", "thinking off"],
            "empty reply": ["4", "4", "3", "thinking off, memory kept"],
            "open thought": ["4", "4", "3", "thinking off, memory kept"],
        }
    )


def test_all_requests_of_memreread_are_equal_or_named(tmp_path: Path) -> None:
    checkout = with_light_tokenizer(write_memreread(tmp_path / "checkout"))
    before = sorted(checkout.rglob("*"))
    status, out, err = run(checkout)
    assert status == 0, out + err
    named = "repeated, hosted switch"
    assert rows(out) == {
        "enough": ["5", "5", "5", named],
        "asks": ["11", "11", "11", named],
        "asks twice": ["10", "10", "10", named],
        "repeats": ["10", "10", "10", named],
        "unboxed": ["7", "7", "7", named],
        "cut": ["11", "11", "11", named],
        "blanks": ["11", "11", "11", named],
        "blank answer": ["7", "7", "7", named],
        "braces": ["7", "7", "7", named],
        "few letters": ["3", "3", "3", named],
        "foreign": ["3", "3", "3", named],
        "tags": ["7", "7", "5", f"{named}, tags"],
        "edges": ["7", "7", "7", named],
        "decomposed": ["7", "7", "7", named],
        "empty reply": ["11", "11", "9", f"{named}, memory kept"],
        "open thought": ["11", "11", "9", f"{named}, memory kept"],
    }
    assert sorted(checkout.rglob("*")) == before


def test_a_difference_without_a_name_fails_the_run(tmp_path: Path) -> None:
    changed = MEMAGENT.replace("temperature=temperature", "temperature=0.5")
    status, out, _ = run(with_light_tokenizer(write_memagent(tmp_path / "checkout", changed)))
    assert status == 1
    assert "UNNAMED plain, request 1: temperature: 0.5 and 0.7" in out


def test_a_missing_module_ends_the_run_with_the_way_out(tmp_path: Path) -> None:
    loop = MEMREREAD_API.replace("import re\n", "import no_such_module\n")
    status, out, err = run(write_memreread(tmp_path / "checkout", loop=loop))
    assert (status, out) == (2, "")
    assert "lacks (missing: no_such_module)" in err
    assert "pip install openai httpcore transformers" in err


def test_a_loop_that_breaks_ends_the_run_with_its_last_lines(tmp_path: Path) -> None:
    broken = MEMAGENT.replace("    memory = NO_MEMORY\n", "    raise RuntimeError('the loop broke')\n")
    status, _, err = run(with_light_tokenizer(write_memagent(tmp_path / "checkout", broken)))
    assert status == 2
    assert "memagent's loop ended with status 1" in err
    assert "RuntimeError: the loop broke" in err


@pytest.mark.parametrize(
    ("python", "tokenizer", "reason"),
    [
        (sys.executable, Path("/nowhere"), "/nowhere/tokenizer.json"),
        ("/no/python", TOKENIZER, "/no/python cannot be run"),
    ],
)
async def test_what_cannot_be_run_is_refused(tmp_path: Path, python: str, tokenizer: Path, reason: str) -> None:
    checkout = write_memagent(tmp_path / "checkout")
    with pytest.raises((NoUpstream, FileNotFoundError), match=reason):
        await compared(Upstream(checkout, python, tokenizer), "memagent")


def test_a_folder_of_another_project_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoUpstream, match="is no checkout of MemReread or MemAgent"):
        Upstream(tmp_path, sys.executable, TOKENIZER).projects()


def request(content: str = "Q", times: int = 1, **fields: object) -> Request:
    body = {"model": "m", "messages": [{"role": "user", "content": content}], "temperature": 0.7}
    return Request(dict[str, object](body | fields), times)  # type: ignore[arg-type]


def names(theirs: Request, ours: Request) -> list[str]:
    return [difference.name for difference in compare("item", [theirs], [ours]).differences]


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [
        (request(), request(), []),
        (request(times=2), request(), ["repeated"]),
        (request(), request(times=2), [""]),
        (request("a </section>"), request("a &lt;/section>"), ["tags"]),
        (request("a </section> b"), request("a &lt;/section> c"), [""]),
        (request("a\n"), request("a"), [""]),
        (request("<problem> \nq\n</problem>"), request("<problem> \n q\n\n</problem>"), ["edges"]),
        (request("<section>\nd\n</section>"), request("<section>\n\nd\n</section>"), ["edges"]),
        (request("<problem> \nq\n</problem>"), request("<problem>\nq\n</problem>"), [""]),
        (request("<memory>\nm\n</memory>"), request("<memory>\nm\n\n</memory>"), [""]),
        (request("No\u00ebl"), request("Noe\u0308l"), ["composed"]),
        (request("No\u00ebl"), request("Noel"), [""]),
        (request("<memory>\n\n</memory> q"), request("<memory>\nold\n</memory> q"), ["memory kept"]),
        (request("<memory>\n<think>so\n</memory> q"), request("<memory>\nold\n</memory> q"), ["memory kept"]),
        (request("<memory>\nnew\n</memory> q"), request("<memory>\nold\n</memory> q"), [""]),
        (request("<memory>\n\n</memory> q"), request("<memory>\nold\n</memory> r"), [""]),
        (request(thinking={"type": "disabled"}), request(), ["hosted switch"]),
        (request(), request(thinking={"type": "disabled"}), [""]),
        (request(), request(chat_template_kwargs={"enable_thinking": False}), ["thinking off"]),
        (request(), request(chat_template_kwargs={"enable_thinking": True}), [""]),
        (request(max_tokens=8192), request(max_tokens=5120), [""]),
        (request(top_p=0.95), request(), [""]),
    ],
)
def test_only_known_differences_have_a_name(theirs: Request, ours: Request, expected: list[str]) -> None:
    assert names(theirs, ours) == expected


def test_a_request_that_one_side_alone_sends_has_no_name() -> None:
    found = compare("item", [request(), request("more")], [request()])
    assert (found.theirs, found.ours, found.equal) == (2, 1, 1)
    assert [difference.shown for difference in found.unnamed] == ["only they send it"]


def test_the_scripted_model_answers_in_order_and_repeats_itself_for_a_repeated_request() -> None:
    model = ScriptedModel({"m": [Reply("one"), Reply("two")]})
    first: Json = {"model": "m", "messages": ["a"]}
    second: Json = {"model": "m", "messages": ["b"]}
    said = [model.reply(body).text for body in (first, first, second, {**first, "model": "n"}, first)]
    assert said == ["one", "one", "two", "the end", "the end"]
    assert [each.times for each in model.requests["m"]] == [2, 1, 1]


@pytest.mark.parametrize("project", ["memagent", "memagent-table", "memreread"])
def test_every_item_has_a_name_of_its_own(project: Project) -> None:
    found = [item.name for item in items_of(project)]
    assert len(set(found)) == len(found)
