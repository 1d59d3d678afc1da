/** Following a read: its events arrive in a log, whatever becomes of the connection. */
import { asApiError, errorIn, eventsOf, plain, send, type ApiError } from "../../api";
import { ReadLog, type LongRead, type ReadEvent } from "./log";

/** How often the page is drawn while events arrive. */
const DRAW_EVERY_MS = 100;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;

export interface Session {
  readonly log: ReadLog;
  /** Changes with every batch of events. */
  readonly version: number;
  /** Why the events do not arrive; null while they do. */
  readonly error: ApiError | null;
  /** Whether the read runs in this tab's own request, and ends with it. */
  readonly isForeground: boolean;
  onChange: (listener: () => void) => () => void;
  stop: () => void;
}

/** Tells its listeners at most every 100 ms, however many events arrive. */
class Live implements Session {
  readonly log = new ReadLog();
  version = 0;
  error: ApiError | null = null;
  readonly ended = new AbortController();
  private readonly listeners = new Set<() => void>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly isForeground: boolean) {}

  onChange = (listener: () => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  stop = () => {
    this.ended.abort();
    clearTimeout(this.timer);
  };

  changed(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.version += 1;
      for (const listener of this.listeners) listener();
    }, DRAW_EVERY_MS);
  }

  fail(error: unknown): void {
    this.error = asApiError(error);
    this.changed();
  }

  /** Take the events of a response in, to its end. Throws the error that the stream reports. */
  async drink(response: Response): Promise<void> {
    for await (const { event, data } of eventsOf(response)) {
      const body = parsed(data);
      if (event === "error") throw errorIn(body, 500);
      if (body === null) continue;
      this.error = null;
      this.log.take(body as ReadEvent);
      this.changed();
    }
  }
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return null;
  }
}

/** Follow a read from its first event, or go on after the last one that arrived, until it is over. */
export function follow(readId: string): Session {
  const live = new Live(false);
  void keepFollowing(readId, live);
  return live;
}

async function keepFollowing(readId: string, live: Live): Promise<void> {
  const { signal } = live.ended;
  let pauseMs = FIRST_PAUSE_MS;
  while (!signal.aborted && !live.log.isOver) {
    const before = live.log.last;
    try {
      await catchUp(readId, live);
      live.error = null;
    } catch (error) {
      if (signal.aborted) return;
      live.fail(error);
      if (!asApiError(error).isTemporary) return;
    }
    if (live.log.isOver) break;
    pauseMs = live.log.last > before ? FIRST_PAUSE_MS : Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    await pause(pauseMs, signal);
  }
  live.changed();
}

/** Read the record and the events since the last one; a stream that ends early is asked for again. */
async function catchUp(readId: string, live: Live): Promise<void> {
  const { signal } = live.ended;
  const path = { read_id: readId };
  const read = await plain<LongRead>("get", "/v1/long-read/{read_id}", { path, signal });
  if (live.log.last < 0 && !live.log.read) live.log.setRead({ ...read, status: read.status });
  live.changed();
  const query = { stream: true, starting_after: live.log.last };
  await live.drink(await send("get", "/v1/long-read/{read_id}", { path, query, signal }));
  if (!live.log.isOver) live.log.setRead(await plain<LongRead>("get", "/v1/long-read/{read_id}", { path, signal }));
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

/** Reads that run in this tab's own requests; they go on while the viewer looks at other pages. */
const foreground = new Map<string, Session>();

/** Start a read in this tab. Resolves with its id once the first event names it. */
export async function readHere(body: object): Promise<string> {
  const live = new Live(true);
  const response = await send("post", "/v1/long-read", { body: { ...body, stream: true }, signal: live.ended.signal });
  return new Promise((resolve, reject) => {
    const stop = live.onChange(() => {
      const id = live.log.read?.id;
      if (!id) return live.error ? (stop(), reject(live.error)) : undefined;
      stop();
      foreground.set(id, live);
      resolve(id);
    });
    void live.drink(response).catch((error: unknown) => live.fail(error)).finally(() => void settle(live));
  });
}

/** A stream that broke may lack its end: the record has it. */
async function settle(live: Live): Promise<void> {
  const id = live.log.read?.id;
  if (id && !live.log.isOver) {
    await plain<LongRead>("get", "/v1/long-read/{read_id}", { path: { read_id: id } }).then(
      (read) => live.log.setRead(read),
      (error: unknown) => live.fail(error),
    );
  }
  live.changed();
}

/** The session of a read: the tab's own if it runs here, else one that follows. */
export function sessionOf(readId: string): Session {
  return foreground.get(readId) ?? follow(readId);
}
