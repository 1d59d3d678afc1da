import { Link } from "@tanstack/react-router";
import type { MemoryEvent, Version } from "../../data/memories";
import { Moment } from "../../shared";

const TONES: Record<string, string> = { "new fact": "good", "changed fact": "accent", edited: "accent", recovered: "good", deleted: "bad", overtaken: "warn", "older news": "warn", interlude: "warn" };

interface Props {
  versions: readonly Version[];
  shown: string;
  events: readonly MemoryEvent[];
  onOpen: (id: string) => void;
}

/** The versions of a memory, the newest first, each with what made it: rule, the writer's reason, source turns. */
export function Timeline({ versions, shown, events, onOpen }: Props) {
  const newest = [...versions].reverse();
  return (
    <section aria-label="History">
      <h3 className="section-title">History</h3>
      <ol className="timeline">
        {newest.map((version) => (
          <li key={version.id} className={version.id === shown ? "is-shown" : ""}>
            <div className="row wrap between">
              <span className="row wrap">
                <strong>Version {version.version}</strong>
                {version.status === "deleted" && <span className="tag bad">deleted</span>}
                {!version.valid_to && version.status === "activated" && <span className="tag good">holds now</span>}
              </span>
              <span className="faint">
                <Moment at={version.valid_from} />
              </span>
            </div>
            {version.id === shown ? <p className="text">{version.memory}</p> : <OtherVersion version={version} onOpen={onOpen} />}
            <Changes version={version} versions={versions} onOpen={onOpen} />
            <Writer event={events.find(({ memories }) => memories?.some(({ item }) => item.id === version.id))} />
            <Sources version={version} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function OtherVersion({ version, onOpen }: { version: Version; onOpen: (id: string) => void }) {
  return (
    <button type="button" className="link text" onClick={() => onOpen(version.id)}>
      {version.memory}
    </button>
  );
}

function Changes({ version, versions, onOpen }: { version: Version; versions: readonly Version[]; onOpen: (id: string) => void }) {
  return (
    <ul className="changes">
      {version.changes?.map((change, index) => {
        const other = versions.find(({ id }) => id === change.other);
        return (
          <li key={index}>
            <span className={`tag ${TONES[change.rule] ?? ""}`}>{change.rule}</span> <span className="soft text">{change.because}</span>{" "}
            {other && other.id !== version.id && (
              <button type="button" className="link" onClick={() => onOpen(other.id)}>
                version {other.version}
              </button>
            )}{" "}
            {change.similarity !== null && change.similarity !== undefined && <span className="faint number">similarity {change.similarity.toFixed(3)} </span>}
            <span className="faint">
              <Moment at={change.at} />
            </span>
          </li>
        );
      })}
    </ul>
  );
}

/** What the memory writer wrote down about the write that made the version, as long as its event is kept. */
function Writer({ event }: { event: MemoryEvent | undefined }) {
  const decisions = event?.decisions?.filter(({ reason, reasoning }) => reason || reasoning) ?? [];
  if (!event) return null;
  return (
    <div className="writer">
      <div className="row between">
        <span className="field-label">The writer&rsquo;s decision</span>
        <Link to="/decisions" search={{ user: event.user_id, event: event.event_id }}>
          Open it
        </Link>
      </div>
      {decisions.map(({ action, reason, reasoning }, index) => (
        <div key={index}>
          {reason && (
            <p className="text">
              <span className="tag accent">{action}</span> {reason}
            </p>
          )}
          {reasoning && (
            <details>
              <summary>Reasoning</summary>
              <p className="text soft">{reasoning}</p>
            </details>
          )}
        </div>
      ))}
    </div>
  );
}

function Sources({ version }: { version: Version }) {
  if (!version.sources?.length) return null;
  return (
    <details className="sources" open>
      <summary>From {version.sources.length === 1 ? "one turn" : `${version.sources.length} turns`}</summary>
      {version.sources.map((source, index) => (
        <div key={index} className="turn">
          <span className="turn-role">{source.name ?? source.role}</span>
          <span className="text grow">{source.content}</span>
          {source.timestamp && (
            <span className="faint">
              <Moment at={source.timestamp} />
            </span>
          )}
        </div>
      ))}
    </details>
  );
}
