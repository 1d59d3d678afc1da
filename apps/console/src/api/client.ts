/** The gateway's API: typed by its own OpenAPI document, with the key of this tab. */
import { ApiError, errorOf } from "./errors";
import { apiKey } from "./key";
import type { components, paths } from "./schema";

export type Schema = components["schemas"];
type Method = "get" | "post" | "put" | "patch" | "delete";
type Operation<P extends keyof paths, M extends Method> = NonNullable<paths[P][M]>;
type Having<M extends Method> = { [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? P : never }[keyof paths];
type Json<T> = T extends { content: { "application/json": infer Body } } ? Body : never;
type Success<O> = O extends { responses: infer R } ? { [S in keyof R]: S extends 200 | 201 | 202 ? Json<R[S]> : never }[keyof R] : never;

type Values = Record<string, string | number | boolean | null | undefined>;

export interface Call {
  /** Values of the names in braces in the path. */
  path?: Record<string, string>;
  query?: Values;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

/** The gateway's own address: the folder above the console's. */
export function gatewayUrl(path: string): string {
  return new URL(`..${path}`, document.baseURI).href;
}

function addressOf(path: string, call: Call): string {
  const filled = path.replace(/{(\w+)}/g, (_, name: string) => encodeURIComponent(call.path?.[name] ?? ""));
  const given = Object.entries(call.query ?? {}).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return gatewayUrl(filled + (query && `?${query}`));
}

function bodyOf(body: unknown): BodyInit | undefined {
  if (body === undefined || body instanceof Blob || body instanceof FormData || typeof body === "string") return body;
  return JSON.stringify(body);
}

/** Send a request and return its response; throws ApiError on any status that is not 2xx, and without a response. */
export async function send(method: string, path: string, call: Call = {}): Promise<Response> {
  const headers = new Headers(call.headers);
  const key = apiKey();
  if (key) headers.set("Authorization", `Bearer ${key}`);
  const body = bodyOf(call.body);
  if (body !== undefined && !(body instanceof FormData) && !headers.has("Content-Type")) headers.set("Content-Type", "application/json");
  let response: Response;
  try {
    response = await fetch(addressOf(path, call), { method: method.toUpperCase(), headers, ...(body !== undefined && { body }), ...(call.signal && { signal: call.signal }) });
  } catch (failure) {
    if (call.signal?.aborted) throw failure;
    throw new ApiError("The gateway does not answer. Is it running?", { code: "unreachable" });
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

function method<M extends Method>(name: M) {
  return async <P extends Having<M>>(path: P, call: Call = {}): Promise<Success<Operation<P, M>>> =>
    (await send(name, path as string, call)).json() as Promise<Success<Operation<P, M>>>;
}

/** One function per method, typed by path: `api.get("/v1/memory", { query: { user_id: "ann" } })`. */
export const api = { get: method("get"), post: method("post"), put: method("put"), patch: method("patch"), delete: method("delete") };

/** A route that the OpenAPI document leaves out, mem0's among them. */
export async function plain<T>(name: Method, path: string, call: Call = {}): Promise<T> {
  return (await send(name, path, call)).json() as Promise<T>;
}
