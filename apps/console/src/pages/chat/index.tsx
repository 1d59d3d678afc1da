import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState, type FormEvent } from "react";
import { useAddress } from "../../address";
import { plain } from "../../api";
import { Icon } from "../../layout/Icon";
import { Empty, Failure } from "../../shared";
import { useConversation, type Mode } from "./conversation";
import { MemoryUse } from "./MemoryUse";
import "./chat.css";

const MODES: readonly { mode: Mode; label: string }[] = [
  { mode: "readwrite", label: "Memory on" },
  { mode: "read", label: "Recall only" },
  { mode: "write", label: "Remember only" },
  { mode: "off", label: "Memory off" },
];

function useModels() {
  return useQuery({
    queryKey: ["models"],
    queryFn: async ({ signal }) => (await plain<{ data: { id: string }[] }>("get", "/v1/models", { signal })).data.map(({ id }) => id),
  });
}

/** A playground: shows beside each reply what was recalled for it, and what was stored after it. */
export default function Chat() {
  const [address, change] = useAddress();
  const models = useModels();
  const chat = useConversation();
  const model = address.model ?? models.data?.[0] ?? "";
  const user = address.user ?? "";
  const mode = MODES.find((one) => one.mode === address.memory)?.mode ?? "readwrite";
  const end = useRef<HTMLDivElement>(null);
  const last = chat.turns.at(-1);
  useEffect(() => {
    if (last) end.current?.scrollIntoView({ block: "end" });
  }, [chat.turns.length, last]);
  return (
    <div className="page full chat">
      <div className="page-head">
        <h1>Chat</h1>
        <button type="button" className="button" disabled={chat.turns.length === 0} onClick={chat.clear}>
          New conversation
        </button>
      </div>
      <div className="chat-options">
        <label className="field">
          <span className="field-label">User</span>
          <input value={user} onChange={(event) => change({ user: event.target.value || undefined }, { replace: true })} placeholder="Whose memory; try ann" />
        </label>
        <label className="field">
          <span className="field-label">Memory</span>
          <select value={mode} onChange={(event) => change({ memory: event.target.value }, { replace: true })}>
            {MODES.map((one) => (
              <option key={one.mode} value={one.mode}>
                {one.label}
              </option>
            ))}
          </select>
        </label>
        <label className="field">
          <span className="field-label">Model</span>
          <select value={model} onChange={(event) => change({ model: event.target.value }, { replace: true })}>
            {!model && <option value="">…</option>}
            {[...new Set([model, ...(models.data ?? [])])].filter(Boolean).map((id) => (
              <option key={id} value={id}>
                {id}
              </option>
            ))}
          </select>
        </label>
      </div>
      {models.isError && <Failure small error={models.error} onRetry={() => void models.refetch()} />}
      <div className="card chat-turns" aria-label="Conversation" role="log" tabIndex={0}>
        {chat.turns.length === 0 && (
          <Empty title="Tell it something, then ask in a new conversation">
            <p>With a user and memory on, a later conversation recalls what this one stored. Beside each reply stands what was recalled and what was kept.</p>
          </Empty>
        )}
        {chat.turns.map((turn) => (
          <div key={turn.id} className={`bubble-row ${turn.role}`}>
            <div className="bubble">
              <span className="turn-role">{turn.role === "user" ? "You" : "Model"}</span>
              <p className="text">
                {turn.text}
                {turn.isStreaming && <span className="caret" aria-hidden="true" />}
              </p>
              {turn.error !== undefined && <Failure small error={turn.error} />}
            </div>
            {turn.role === "assistant" && turn.memory && <MemoryUse use={turn.memory} user={turn.user} />}
            {turn.role === "assistant" && !turn.isStreaming && !turn.memory && turn.error === undefined && <p className="faint">No memory was used.</p>}
          </div>
        ))}
        <div ref={end} />
      </div>
      {!user && mode !== "off" && <p className="faint">Without a user there is no memory: enter one above.</p>}
      <Composer isBusy={chat.isBusy} canSend={Boolean(model)} onSend={(text) => void chat.send(text, { model, user, mode })} onStop={chat.stop} />
    </div>
  );
}

function Composer({ isBusy, canSend, onSend, onStop }: { isBusy: boolean; canSend: boolean; onSend: (text: string) => void; onStop: () => void }) {
  const [text, setText] = useState("");
  const submit = (event?: FormEvent) => {
    event?.preventDefault();
    if (!text.trim() || isBusy || !canSend) return;
    onSend(text.trim());
    setText("");
  };
  return (
    <form className="composer" onSubmit={submit}>
      <textarea
        rows={2}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
            event.preventDefault();
            submit();
          }
        }}
        placeholder="Write a message; Enter sends"
        aria-label="Message"
      />
      {isBusy ? (
        <button type="button" className="button" onClick={onStop}>
          Stop
        </button>
      ) : (
        <button type="submit" className="button primary" disabled={!text.trim() || !canSend}>
          <Icon name="send" size={16} /> Send
        </button>
      )}
    </form>
  );
}
