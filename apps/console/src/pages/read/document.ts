/** The document of a read, and what the page remembers about it in the read's metadata. */
import { api, ApiError, asApiError, plain, send, type Schema } from "../../api";
import type { LongRead } from "./log";

type FileObject = Schema["FileObject"];

/** Names in a read's metadata: which file it reads. The API returns metadata unchanged. */
export const FILE_ID = "console_file_id";
export const FILE_NAME = "console_file_name";
const NAME_CHARS = 200;
/** A longer text is not loaded into the page; its evidence is shown by itself. */
export const MOST_CHARS_SHOWN = 40_000_000;
const ASK_EVERY_MS = 700;

export interface Source {
  /** The `document` of a request. */
  document: { text: string } | { file_id: string };
  metadata: Record<string, string>;
}

export function nameOf(read: LongRead): string {
  return read.metadata?.[FILE_NAME] ?? "";
}

/** Texts of reads whose gateway has no file storage: kept until the tab is reloaded. */
const pasted = new Map<string, string>();

export function keepText(readId: string, source: Source): void {
  if ("text" in source.document) pasted.set(readId, source.document.text);
}

/** Upload a file and wait until its text can be read. `onState` gets each state. Throws ApiError. */
export async function uploaded(file: File, signal: AbortSignal, onState: (state: FileObject["status"]) => void): Promise<FileObject> {
  const form = new FormData();
  form.set("purpose", "user_data");
  form.set("file", file);
  let found = await plain<FileObject>("post", "/v1/files", { body: form, signal });
  for (;;) {
    onState(found.status);
    if (found.status === "processed") return found;
    if (found.status === "error") throw new ApiError(found.status_details ?? "The file has no text that can be read.", { status: 422, code: "file_unreadable" });
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
    signal.throwIfAborted();
    found = await api.get("/v1/files/{file_id}", { path: { file_id: found.id }, signal });
  }
}

export function sourceOfFile(file: FileObject): Source {
  return { document: { file_id: file.id }, metadata: { [FILE_ID]: file.id, [FILE_NAME]: file.filename.slice(0, NAME_CHARS) } };
}

/** A pasted text becomes a file too, so that the page finds it after a reload; without a storage it goes into the request. */
export async function sourceOfText(text: string, signal: AbortSignal): Promise<Source> {
  try {
    const file = new File([text], "Pasted text.txt", { type: "text/plain" });
    return sourceOfFile(await uploaded(file, signal, () => undefined));
  } catch (error) {
    if (asApiError(error).status !== 501) throw error;
    return { document: { text }, metadata: { [FILE_NAME]: "Pasted text" } };
  }
}

/** The text to which the read's evidence refers; null where the page cannot have it. */
export async function textOf(read: LongRead, signal: AbortSignal): Promise<string | null> {
  const fileId = read.metadata?.[FILE_ID];
  if (!fileId) return pasted.get(read.id) ?? null;
  const response = await send("get", "/v1/files/{file_id}/content", { path: { file_id: fileId }, query: { form: "text" }, signal });
  if (Number(response.headers.get("content-length") ?? 0) > MOST_CHARS_SHOWN) {
    await response.body?.cancel();
    return null;
  }
  return response.text();
}
