/** A failed request: the fields of the API's error object, or why there was no response at all. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly param: string | null;
  readonly requestId: string | null;

  constructor(message: string, options: { status?: number; code?: string; param?: string | null; requestId?: string | null } = {}) {
    super(message);
    this.name = "ApiError";
    this.status = options.status ?? 0;
    this.code = options.code ?? "unknown";
    this.param = options.param ?? null;
    this.requestId = options.requestId ?? null;
  }

  /** Whether the request may succeed later without a change. */
  get isTemporary(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

interface ErrorBody {
  message?: unknown;
  code?: unknown;
  param?: unknown;
}

/** Read an error out of a response's body, whatever that is. */
export function errorIn(body: unknown, status: number, requestId: string | null = null): ApiError {
  const error = (typeof body === "object" && body !== null ? (body as { error?: ErrorBody }).error : undefined) ?? {};
  return new ApiError(typeof error.message === "string" ? error.message : `The server answered ${status}.`, {
    status,
    code: typeof error.code === "string" ? error.code : "unknown",
    param: typeof error.param === "string" ? error.param : null,
    requestId,
  });
}

export async function errorOf(response: Response): Promise<ApiError> {
  const body: unknown = await response.json().catch(() => null);
  return errorIn(body, response.status, response.headers.get("x-request-id"));
}

export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError(error instanceof Error ? error.message : String(error));
}
