import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { useAddress } from "../../address";
import { api, plain } from "../../api";
import { Field, Failure } from "../../shared";
import { keepText, sourceOfFile, sourceOfText, type Source } from "./document";
import { EstimateLine } from "./EstimateLine";
import type { LongRead } from "./log";
import { Questions } from "./Questions";
import { readHere } from "./session";
import { PasteField, UploadField, type UploadedFile } from "./SourceFields";

export interface Choices {
  strategy: "memagent" | "memreread";
  maxRereads: number;
  background: boolean;
  chunkTokens: string;
  saveTo: string;
}

const FIRST: Choices = { strategy: "memagent", maxRereads: 2, background: true, chunkTokens: "", saveTo: "" };

/** The fields of a request beside its document. */
export function fieldsOf(questions: readonly string[], choices: Choices): Record<string, unknown> {
  return {
    questions: questions.map((question) => question.trim()).filter(Boolean),
    strategy: choices.strategy,
    evidence: true,
    ...(choices.strategy === "memreread" && { max_rereads: choices.maxRereads }),
    ...(choices.chunkTokens && { chunk_tokens: Number(choices.chunkTokens) }),
    ...(choices.saveTo.trim() && { save_to_memory: { user_id: choices.saveTo.trim() } }),
  };
}

async function started(source: Source, fields: Record<string, unknown>, background: boolean): Promise<string> {
  const body = { ...fields, ...source };
  const id = background ? (await plain<LongRead>("post", "/v1/long-read", { body: { ...body, background } })).id : await readHere(body);
  keepText(id, source);
  return id;
}

export function NewRead() {
  const [, setAddress] = useAddress();
  const queries = useQueryClient();
  const [kind, setKind] = useState<"file" | "paste">("file");
  const [file, setFile] = useState<UploadedFile | null>(null);
  const [text, setText] = useState("");
  const [questions, setQuestions] = useState([""]);
  const [choices, setChoices] = useState<Choices>(FIRST);
  const change = (changes: Partial<Choices>) => setChoices((now) => ({ ...now, ...changes }));

  const document = kind === "paste" ? (text.trim() ? { text } : null) : file ? { file_id: file.id } : null;
  const fields = fieldsOf(questions, choices);
  const isReady = document !== null && (fields.questions as string[]).length > 0;
  const start = useMutation({
    mutationFn: async () => {
      const source = kind === "paste" ? await sourceOfText(text, new AbortController().signal) : sourceOfFile(await api.get("/v1/files/{file_id}", { path: { file_id: file?.id ?? "" } }));
      return started(source, fields, choices.background);
    },
    onSuccess: (id) => {
      void queries.invalidateQueries({ queryKey: ["reads"] });
      setAddress({ read: id });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isReady && !start.isPending) start.mutate();
  };

  return (
    <form className="card padded stack read-form" onSubmit={submit} aria-label="New read">
      <div className="segments" role="radiogroup" aria-label="Document from">
        <Segment name="A file" isOn={kind === "file"} onPick={() => setKind("file")} />
        <Segment name="Pasted text" isOn={kind === "paste"} onPick={() => setKind("paste")} />
      </div>
      {kind === "file" ? <UploadField file={file} onFile={setFile} /> : <PasteField text={text} onText={setText} />}
      <Questions questions={questions} onChange={setQuestions} />
      <ChoiceFields choices={choices} onChange={change} />
      <EstimateLine document={isReady ? document : null} fields={fields} />
      {start.isError && <Failure error={start.error} small />}
      <div className="row wrap">
        <button type="submit" className="button primary" disabled={!isReady || start.isPending}>
          {start.isPending ? "Starting …" : "Start reading"}
        </button>
        {!isReady && <span className="faint">{document ? "Ask a question to begin." : "Choose a document to begin."}</span>}
      </div>
    </form>
  );
}

function Segment({ name, isOn, onPick }: { name: string; isOn: boolean; onPick: () => void }) {
  return (
    <label className={isOn ? "segment is-on" : "segment"}>
      <input type="radio" name="document-from" checked={isOn} onChange={onPick} className="hidden" />
      {name}
    </label>
  );
}

function ChoiceFields({ choices, onChange }: { choices: Choices; onChange: (changes: Partial<Choices>) => void }) {
  return (
    <>
      <div className="read-choices">
        <Field label="How to read">
          <select value={choices.strategy} onChange={(event) => onChange({ strategy: event.target.value as Choices["strategy"] })}>
            <option value="memagent">Once, from start to end</option>
            <option value="memreread">Reread for missing facts</option>
          </select>
        </Field>
        <Field label="Where it runs">
          <select value={choices.background ? "background" : "foreground"} onChange={(event) => onChange({ background: event.target.value === "background" })}>
            <option value="background">In the background</option>
            <option value="foreground">In this tab</option>
          </select>
        </Field>
      </div>
      <p className="faint">
        {choices.background ? "A worker reads. You may close or reload this page, and come back to it." : "The read starts at once. Closing or reloading this tab cancels it."}
      </p>
      <details className="more">
        <summary>More options</summary>
        <div className="read-choices">
          {choices.strategy === "memreread" && (
            <Field label="Rereads at most">
              <input type="number" min={0} max={16} value={choices.maxRereads} onChange={(event) => onChange({ maxRereads: event.target.valueAsNumber || 0 })} />
            </Field>
          )}
          <Field label="Tokens of a chunk" hint="Empty: the model's own size">
            <input type="number" min={16} max={1_000_000} value={choices.chunkTokens} onChange={(event) => onChange({ chunkTokens: event.target.value })} />
          </Field>
          <Field label="Remember the notes for the user" hint="Empty: nothing is remembered">
            <input value={choices.saveTo} maxLength={128} autoComplete="off" onChange={(event) => onChange({ saveTo: event.target.value })} />
          </Field>
        </div>
      </details>
    </>
  );
}
