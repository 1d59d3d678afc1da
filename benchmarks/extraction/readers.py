"""The readers that are compared, each in a process of its own: ``python -m benchmarks.extraction.readers NAME``.

The process reads paths from standard input and answers each with a line of JSON: text, pages, CPU seconds, memory. A
reader whose package is not installed is left out of the comparison.
"""

import json
import logging
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias

from gateway.extract.kinds import text_of

CPU_S: Final = 60
"""In which a reader must have read a file."""
Reader: TypeAlias = Callable[[Path], str]
"""Returns a text whose pages end with form feeds."""


def memloop(path: Path) -> str:
    """What this project reads."""
    with path.open("rb") as source:
        return "".join(text_of(source, name=path.name, media_type="", ocr="", notes=[]))


def pdfium(path: Path) -> str:
    """PDFium alone, without forms and notes."""
    module: Any = import_module("pypdfium2")
    document = module.PdfDocument(path)
    texts = (page.get_textpage().get_text_range() for page in document)
    return "".join(text.replace("\ufffe", "") + "\f" for text in texts)  # the mark of a hyphen at a line end


def pypdf(path: Path) -> str:
    """What this project read before."""
    reader: Any = import_module("pypdf").PdfReader(path)
    if reader.is_encrypted:
        reader.decrypt("")
    return "".join(f"{page.extract_text()}\f" for page in reader.pages)


def kreuzberg(path: Path) -> str:
    """Kreuzberg with pages, without OCR."""
    module: Any = import_module("kreuzberg")
    pages = module.PageConfig(extract_pages=True)
    config = module.ExtractionConfig(
        use_cache=False, enable_quality_processing=False, disable_ocr=True, pages=pages, output_format="plain"
    )
    result = module.extract_file_sync(str(path), config=config)
    return str(result.content) + "\f" * len(result.pages or [])


def markitdown(path: Path) -> str:
    """MarkItDown, which writes Markdown."""
    return str(import_module("markitdown").MarkItDown().convert_local(str(path)).text_content)


def docling_parse(path: Path) -> str:
    """Docling's parser of PDF, without its models."""
    core: Any = import_module("docling_core.types.doc.page")
    parser: Any = import_module("docling_parse.pdf_parser").DoclingPdfParser(loglevel="fatal")
    pages = (page for _, page in parser.load(str(path)).iterate_pages())
    lines = ("\n".join(cell.text for cell in page.iterate_cells(core.TextCellUnit.LINE)) for page in pages)
    return "".join(f"{text}\f" for text in lines)


READERS: Final[Mapping[str, Reader]] = {
    reader.__name__: reader for reader in (memloop, pdfium, pypdf, kreuzberg, markitdown, docling_parse)
}
ONLY_PDF: Final = frozenset({"pdfium", "pypdf", "docling_parse"})
_PACKAGES: Final = {"memloop": "gateway", "pdfium": "pypdfium2"}


def installed() -> list[str]:
    """The readers whose packages are installed here."""
    return [name for name in READERS if find_spec(_PACKAGES.get(name, name)) is not None]


def main(name: str) -> None:
    """Answer each path until the input ends."""
    logging.disable()
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, CPU_S)  # whose signal ends the process
        began = time.process_time()
        text, failure = "", ""
        try:
            text = READERS[name](Path(line.removesuffix("\n")))
        except Exception as error:  # noqa: BLE001 - what a reader raises is a result of the comparison
            failure = f"{type(error).__name__}: {error}"[:200]
        spent = time.process_time() - began
        mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(
            json.dumps({"text": text, "failure": failure, "cpu_s": spent, "mib": mib}), file=sys.__stdout__, flush=True
        )


if __name__ == "__main__":
    main(sys.argv[1])
