/** Server-sent events, read from a fetch response: EventSource could send no key. */
export interface ServerEvent {
  event: string;
  data: string;
}

/** Yield the events of the response's body as they arrive; comments (heartbeats) are skipped. */
export async function* eventsOf(response: Response): AsyncGenerator<ServerEvent> {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const parts = (rest + value).replace(/\r\n/g, "\n").split("\n\n");
      rest = parts.pop() ?? "";
      for (const part of parts) {
        const event = parsed(part);
        if (event) yield event;
      }
    }
    const last = parsed(rest);
    if (last) yield last;
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function parsed(text: string): ServerEvent | null {
  let event = "message";
  const data: string[] = [];
  for (const line of text.split("\n")) {
    const [, name, value] = /^(event|data): ?(.*)$/s.exec(line) ?? [];
    if (name === "event" && value !== undefined) event = value;
    if (name === "data" && value !== undefined) data.push(value);
  }
  return data.length ? { event, data: data.join("\n") } : null;
}
