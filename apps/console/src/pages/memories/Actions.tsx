import { useRef, useState } from "react";
import type { Schema } from "../../api";
import { erased, exported, imported, useChange, type Space } from "../../data/memories";
import { Dialog, Failure, Field, Quantity } from "../../shared";

/** Import, export and erase of a user's memories. */
export function Actions({ space }: { space: Space }) {
  const [open, setOpen] = useState<"import" | "erase" | null>(null);
  const save = useChange(async () => download(await exported(space), `${space.user}.memories.jsonl`));
  const close = () => setOpen(null);
  return (
    <div className="row wrap">
      <button type="button" className="button" onClick={() => setOpen("import")}>
        Import
      </button>
      <button type="button" className="button" disabled={save.isPending} onClick={() => save.mutate(undefined)}>
        {save.isPending ? "Exporting …" : "Export"}
      </button>
      <button type="button" className="button danger" onClick={() => setOpen("erase")}>
        Erase …
      </button>
      {save.isError && (
        <Dialog title="The export failed" onClose={() => save.reset()}>
          <Failure small error={save.error} />
        </Dialog>
      )}
      {open === "import" && <ImportDialog onClose={close} />}
      {open === "erase" && <EraseDialog space={space} onClose={close} />}
    </div>
  );
}

function download(file: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function ImportDialog({ onClose }: { onClose: () => void }) {
  const field = useRef<HTMLInputElement>(null);
  const [name, setName] = useState("");
  const load = useChange(imported);
  const start = () => {
    const file = field.current?.files?.[0];
    if (file) load.mutate(file);
  };
  return (
    <Dialog title="Import memories" onClose={onClose}>
      <p className="soft">Takes a file that an export made. Each line names its own user; importing a file twice changes nothing.</p>
      <Field label="File (JSON lines)">
        <input ref={field} type="file" accept=".jsonl,application/jsonl,text/plain" onChange={(event) => setName(event.target.files?.[0]?.name ?? "")} />
      </Field>
      {load.isError && <Failure small error={load.error} />}
      {load.data && <ImportReceipt result={load.data} />}
      <div className="row end">
        <button type="button" className="button" onClick={onClose}>
          {load.data ? "Done" : "Cancel"}
        </button>
        {!load.data && (
          <button type="button" className="button primary" disabled={!name || load.isPending} onClick={start}>
            {load.isPending ? "Importing …" : "Import"}
          </button>
        )}
      </div>
    </Dialog>
  );
}

function ImportReceipt({ result }: { result: Schema["Imported"] }) {
  return (
    <div className={`notice ${result.failed ? "warn" : "good"}`} role="status">
      <p>
        <Quantity value={result.imported ?? 0} one="version" /> imported, {result.unchanged ?? 0} known already, {result.failed ?? 0} refused.
      </p>
      {result.errors?.map((error, index) => (
        <p key={index} className="text soft">
          Line {error.line}: {error.message}
        </p>
      ))}
    </div>
  );
}

const PLACES: readonly { name: keyof Schema["Erased"]; label: string }[] = [
  { name: "vectors", label: "memories and raw turns, all versions" },
  { name: "buffers", label: "buffers" },
  { name: "queue", label: "waiting writes" },
  { name: "events", label: "events of writes" },
  { name: "long_reads", label: "long reads" },
  { name: "responses", label: "stored responses" },
  { name: "conversations", label: "conversations" },
  { name: "files", label: "files" },
  { name: "vector_stores", label: "vector stores" },
  { name: "traces", label: "traces for training" },
  { name: "replayed", label: "answers kept for a repetition" },
];

function EraseDialog({ space, onClose }: { space: Space; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const erase = useChange(erased);
  const where = [space.agent && `agent ${space.agent}`, space.run && `run ${space.run}`].filter(Boolean).join(", ");
  return (
    <Dialog title={erase.data ? "Erased" : `Erase ${space.user}`} onClose={onClose}>
      {erase.data ? (
        <div role="status" className="stack">
          <p>This is the receipt. None of it can be recovered.</p>
          <dl className="receipt">
            {PLACES.map(({ name, label }) => (
              <div key={name} className="row between">
                <dt>{label}</dt>
                <dd className="number">{erase.data[name] ?? 0}</dd>
              </div>
            ))}
          </dl>
          <button type="button" className="button" onClick={onClose}>
            Done
          </button>
        </div>
      ) : (
        <>
          <p>
            Erases all data of {where ? `${where} of this user` : "this user"} everywhere: memories with their history, raw turns, buffers, waiting writes, long reads, responses, files and all that was derived from them. It cannot be undone. Export first to keep a copy.
          </p>
          <Field label={`Type ${space.user} to confirm`}>
            <input value={typed} onChange={(event) => setTyped(event.target.value)} autoComplete="off" spellCheck={false} />
          </Field>
          {erase.isError && <Failure small error={erase.error} />}
          <div className="row end">
            <button type="button" className="button" onClick={onClose}>
              Cancel
            </button>
            <button type="button" className="button danger solid" disabled={typed !== space.user || erase.isPending} onClick={() => erase.mutate(space)}>
              {erase.isPending ? "Erasing …" : "Erase for good"}
            </button>
          </div>
        </>
      )}
    </Dialog>
  );
}
