"""A fact in a file of each format, read over HTTP: evidence finds it, in the right file and at the right place."""

import re
from pathlib import Path
from typing import Final

from tests.fakes.job_engine import Body, last_text
from tests.gateway.api_rig import api
from tests.gateway.documents import PLACED, PLACELESS
from tests.gateway.file_uploads import processed, upload
from tests.gateway.long_reads import PATH, asked
from tests.gateway.test_files import with_storage

FACT: Final = "The keeper of station {} is named {} Moor."
TOLD = re.compile(r"The keeper of station \d+ is named \w+ Moor\.")
NAMES: Final = (
    *("Ada", "Ben", "Cora", "Dan", "Eva", "Finn", "Gail", "Hal", "Ina", "Jon", "Kim", "Lea", "Max", "Nell", "Otto"),
    *("Pia", "Quin", "Rita", "Sam", "Tess", "Uma", "Vic", "Wim", "Xan"),
)
OTHERS: Final = ("Nothing of note was written here.", "The weather was fair on this day.")


def keeps(body: Body) -> str:
    """A reader that keeps every fact it has seen, and answers with all of them."""
    return " ".join(dict.fromkeys(TOLD.findall(last_text(body)))) or "Nothing yet."


async def test_a_fact_is_found_at_its_place_in_every_format_in_one_read_of_24_files(
    redis_url: str, tmp_path: Path
) -> None:
    files, places = dict[str, bytes](), dict[str, tuple[str, int | None]]()
    for number, (name, made) in enumerate({**PLACED, **PLACELESS}.items()):
        fact = FACT.format(number, NAMES[number])
        files[name] = made(*OTHERS, fact)
        places[fact] = (name, 3 if name in PLACED else None)
    async with api(redis_url, keeps, **with_storage(tmp_path, file_wait_s=240.0)) as it, it.rig.working():
        uploads = [await upload(it.gateway, raw, name=name, media_type="") for name, raw in files.items()]
        done = [await processed(it.gateway, file["id"]) for file in uploads]
        assert {file["filename"]: file["status_details"] for file in done if file["status"] == "error"} == {}
        document = {"file_ids": [file["id"] for file in uploads]}
        answer = await it.post(PATH, asked(document=document, evidence=True, chunk_tokens=500))
        assert answer.status == 200, answer.raw
        texts = {file["id"]: (await it.get(f"/v1/files/{file['id']}/content?form=text")).raw.decode() for file in done}
    found = [entry for entry in answer.json["evidence"] if entry["source"] == "memory" and entry["supported"]]
    assert {entry["statement"]: (entry["filename"], entry.get("page")) for entry in found} == places
    spans = {entry["filename"]: texts[entry["file_id"]][entry["start"] : entry["end"]] for entry in found}
    assert {name: span for name, span in spans.items() if not TOLD.search(span)} == {}
