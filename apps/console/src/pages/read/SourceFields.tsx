import { useEffect, useRef, useState, type DragEvent } from "react";
import { Failure, Field, quantity } from "../../shared";
import { Icon } from "../../layout/Icon";
import { uploaded } from "./document";
import { size } from "./formats";

export interface UploadedFile {
  id: string;
  name: string;
  bytes: number;
}

interface Upload {
  name: string;
  bytes: number;
  state: string;
  error: unknown;
  lacks?: string | null;
}

const STATES = { sending: "Uploading …", uploaded: "Extracting its text …", processed: "Ready", error: "Failed" } as const;

/** A place to drop a file or to choose one. The file is uploaded at once. */
export function UploadField({ file, onFile }: { file: UploadedFile | null; onFile: (file: UploadedFile | null) => void }) {
  const [upload, setUpload] = useState<Upload | null>(null);
  const [isOver, setIsOver] = useState(false);
  const going = useRef<AbortController>(null);
  useEffect(() => () => going.current?.abort(), []);

  const take = async (chosen: File | undefined) => {
    if (!chosen) return;
    going.current?.abort();
    const { signal } = (going.current = new AbortController());
    const begun = { name: chosen.name, bytes: chosen.size, state: STATES.sending, error: null };
    onFile(null);
    setUpload(begun);
    try {
      const found = await uploaded(chosen, signal, (state) => setUpload({ ...begun, state: STATES[state] }));
      setUpload({ ...begun, state: STATES.processed, lacks: found.status_details ?? null });
      onFile({ id: found.id, name: found.filename, bytes: found.bytes });
    } catch (error) {
      if (!signal.aborted) setUpload({ ...begun, state: STATES.error, error });
    }
  };
  const clear = () => {
    going.current?.abort();
    setUpload(null);
    onFile(null);
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setIsOver(false);
    void take(event.dataTransfer.files[0]);
  };

  return (
    <div className="stack tight">
      <label className={isOver ? "drop is-over" : "drop"} onDragOver={(event) => (event.preventDefault(), setIsOver(true))} onDragLeave={() => setIsOver(false)} onDrop={drop}>
        <input type="file" className="hidden" accept=".pdf,.docx,.docm,.pptx,.xlsx,.xls,.odt,.ods,.odp,.fodt,.fods,.fodp,.epub,.rtf,.eml,.mbox,.srt,.vtt,.csv,.tsv,.json,.jsonl,.html,.htm,.md,.txt,text/*,application/pdf" onChange={(event) => (void take(event.target.files?.[0]), (event.target.value = ""))} />
        <Icon name="up" size={22} />
        <span>
          <strong>Drop a file here</strong> or choose one
        </span>
        <span className="faint">PDF, Office, e-book, mail, HTML or text</span>
      </label>
      {upload && (
        <div className="row between file-row" role="status">
          <span className="grow clip" title={upload.name}>
            {upload.name}
          </span>
          <span className="faint number">{size(upload.bytes)}</span>
          <span className={file ? "tag good" : upload.error ? "tag bad" : "tag"}>{upload.state}</span>
          <button type="button" className="button quiet square" aria-label="Remove the file" onClick={clear}>
            <Icon name="close" />
          </button>
        </div>
      )}
      {upload?.lacks && <span className="faint">{upload.lacks}</span>}
      {upload?.error ? <Failure error={upload.error} small /> : null}
    </div>
  );
}

export function PasteField({ text, onText }: { text: string; onText: (text: string) => void }) {
  return (
    <Field label="Text" hint={text ? quantity(text.length, "character") : "Paste the whole document."}>
      <textarea rows={9} value={text} onChange={(event) => onText(event.target.value)} spellCheck={false} />
    </Field>
  );
}
