"""``memloop memory feedback`` and ``memloop memory audit``."""

from rich.console import Console
from rich.text import Text

from memloop.wire.feedback import FeedbackRequest, Verdict
from memloop.wire.quality import AuditExample, AuditFinding, QualityAudit
from memloop_cli.errors import BadInput, named_if_missing
from memloop_clients.gateway import GatewayClient

_VERDICTS: dict[str, Verdict | None] = {
    "helpful": "helpful",
    "wrong": "wrong",
    "outdated": "outdated",
    "withdraw": None,
}


async def feedback(
    client: GatewayClient, console: Console, *, memory_id: str, verdict: str, reason: str | None
) -> None:
    """Give a verdict on a memory, or withdraw it. Raises BadInput for another word."""
    if verdict not in _VERDICTS:
        raise BadInput(f"the verdict is one of {', '.join(_VERDICTS)}")
    with named_if_missing(memory_id):
        judged = await client.feedback(memory_id, FeedbackRequest(feedback=_VERDICTS[verdict], reason=reason))
    shown = judged.feedback.verdict if judged.feedback else "no verdict"
    console.print(Text.assemble((f"{shown}  ", "bold"), judged.memory))


async def audit(
    client: GatewayClient, console: Console, *, user_id: str, stale_after_days: int | None, as_json: bool
) -> None:
    """Print what in a user's memories is suspect."""
    found = await client.audit(user_id, stale_after_days=stale_after_days)
    if as_json:
        console.print(found.model_dump_json(), markup=False)
        return
    _show(found, console)


def _show(audit: QualityAudit, console: Console) -> None:
    bound = "" if audit.complete else ", the first of more"
    console.print(f"{audit.memories} memories of {audit.user_id}{bound}; {audit.raw_turns} raw turns", markup=False)
    if audit.feedback:
        console.print("feedback: " + ", ".join(f"{count} {verdict}" for verdict, count in audit.feedback.items()))
    for finding in audit.findings:
        _show_finding(finding, console)


def _show_finding(finding: AuditFinding, console: Console) -> None:
    style = "yellow" if finding.memories else "dim"
    console.print(Text(f"{finding.suspicion:14} {finding.memories:6}  {finding.share:6.1%}", style=style))
    for example in finding.examples:
        _show_example(example, console)


def _show_example(example: AuditExample, console: Console) -> None:
    console.print(Text(f"  {example.rule}: {example.because}", style="dim"))
    for memory in example.memories:
        console.print(Text.assemble((f"    {memory.id}  ", "dim"), memory.excerpt))
