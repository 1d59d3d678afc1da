import { useState, type FormEvent } from "react";
import { deleted, edited, recovered, useChange, useHistory, type MemoryEvent, type Version } from "../../data/memories";
import { Icon } from "../../layout/Icon";
import { Failure, Moment, Quantity, Rows, useKeys } from "../../shared";
import { Feedback } from "./Feedback";
import { TYPE_NAMES } from "./rows";
import { Timeline } from "./Timeline";

interface Props {
  id: string;
  events: readonly MemoryEvent[];
  onClose: () => void;
  onOpen: (id: string) => void;
}

/** One memory: its text, what may be done with it, and the time line of its versions. */
export function Detail({ id, events, onClose, onOpen }: Props) {
  const history = useHistory(id);
  if (history.isPending) return <Rows count={4} />;
  if (history.isError) return <Failure error={history.error} onRetry={() => void history.refetch()} />;
  const { versions } = history.data;
  const shown = versions.find((version) => version.id === id) ?? versions.at(-1);
  return shown ? <Shown item={shown} versions={versions} events={events} onClose={onClose} onOpen={onOpen} /> : null;
}

function Shown({ item, versions, events, onClose, onOpen }: Omit<Props, "id"> & { item: Version; versions: readonly Version[] }) {
  const [isEditing, setEditing] = useState(false);
  const remove = useChange(deleted);
  const recover = useChange(recovered);
  const isDeleted = item.status === "deleted";
  useKeys({ e: isDeleted ? undefined : () => setEditing(true) });
  return (
    <div className="detail">
      <div className="row between detail-head">
        <span className="row wrap">
          <span className="tag">{TYPE_NAMES[item.memory_type]}</span>
          {isDeleted && <span className="tag bad">deleted</span>}
          {item.valid_to && <span className="tag">superseded</span>}
          <span className="faint">
            <Quantity value={versions.length} one="version" />
          </span>
        </span>
        <button type="button" className="button quiet square" onClick={onClose} aria-label="Close the memory">
          <Icon name="close" />
        </button>
      </div>
      {isEditing ? (
        <Editor
          item={item}
          onDone={(next) => {
            setEditing(false);
            if (next) onOpen(next);
          }}
        />
      ) : (
        <p className="detail-text text">{item.memory}</p>
      )}
      {!isEditing && (
        <div className="row wrap">
          {isDeleted ? (
            <button type="button" className="button primary" disabled={recover.isPending} onClick={() => recover.mutate(item.id, { onSuccess: (back) => onOpen(back.id) })}>
              <Icon name="again" /> Recover
            </button>
          ) : (
            <>
              <button type="button" className="button" onClick={() => setEditing(true)}>
                <Icon name="edit" size={16} /> Edit
              </button>
              <button type="button" className="button danger" disabled={remove.isPending} onClick={() => remove.mutate(item.id)}>
                <Icon name="bin" size={16} /> Delete
              </button>
            </>
          )}
          {isDeleted && <span className="faint">Recoverable while its history is kept.</span>}
        </div>
      )}
      {(remove.isError || recover.isError) && <Failure small error={remove.error ?? recover.error} />}
      {!isDeleted && <Feedback item={item} />}
      <Facts item={item} />
      <Timeline versions={versions} shown={item.id} events={events} onOpen={onOpen} />
    </div>
  );
}

function Editor({ item, onDone }: { item: Version; onDone: (next?: string) => void }) {
  const [text, setText] = useState(item.memory);
  const save = useChange(edited);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate({ item, memory: text.trim() }, { onSuccess: (next) => onDone(next.id) });
  };
  return (
    <form className="stack" onSubmit={submit} onKeyDown={(event) => event.key === "Escape" && (event.stopPropagation(), onDone())}>
      <textarea rows={4} value={text} onChange={(event) => setText(event.target.value)} aria-label="The memory's text" autoFocus />
      <p className="faint">Saving makes a new version; the present one stays in the history.</p>
      {save.isError && <Failure small error={save.error} />}
      <div className="row">
        <button type="submit" className="button primary" disabled={save.isPending || !text.trim() || text.trim() === item.memory}>
          Save a new version
        </button>
        <button type="button" className="button" onClick={() => onDone()}>
          Cancel
        </button>
      </div>
    </form>
  );
}

function Facts({ item }: { item: Version }) {
  const metadata = Object.entries(item.metadata ?? {});
  return (
    <dl className="facts">
      <dt>Key</dt>
      <dd className="text">{item.key}</dd>
      <dt>Holds</dt>
      <dd>
        since <Moment at={item.valid_from} exact />
        {item.valid_to && (
          <>
            {" until "}
            <Moment at={item.valid_to} exact />
          </>
        )}
      </dd>
      {item.expires_at && (
        <>
          <dt>Expires</dt>
          <dd>
            <Moment at={item.expires_at} exact />
          </dd>
        </>
      )}
      {(item.agent_id || item.run_id) && (
        <>
          <dt>Namespace</dt>
          <dd className="text">{[item.agent_id && `agent ${item.agent_id}`, item.run_id && `run ${item.run_id}`].filter(Boolean).join(", ")}</dd>
        </>
      )}
      {item.tags && item.tags.length > 0 && (
        <>
          <dt>Tags</dt>
          <dd className="row wrap">
            {item.tags.map((tag) => (
              <span key={tag} className="tag">
                {tag}
              </span>
            ))}
          </dd>
        </>
      )}
      {metadata.map(([name, value]) => (
        <Pair key={name} name={name} value={typeof value === "string" ? value : JSON.stringify(value)} />
      ))}
      <dt>Id</dt>
      <dd className="mono text">{item.id}</dd>
    </dl>
  );
}

function Pair({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt className="text">{name}</dt>
      <dd className="text">{value}</dd>
    </>
  );
}
