import { useState, type FormEvent } from "react";
import { useAddress } from "../address";
import { useEntities, type Entity } from "../data/users";
import { Icon } from "../layout/Icon";
import { Quantity } from "./Quantity";
import { Empty, Failure, Rows } from "./states";
import { VirtualList } from "./VirtualList";

const ROW_PX = 49;

/** The chosen user, and a way back to all users. */
export function ChosenUser({ user }: { user: string }) {
  const [, change] = useAddress();
  return (
    <button type="button" className="button chosen-user" onClick={() => change({ user: undefined, agent: undefined, run: undefined, item: undefined, q: undefined, event: undefined })} aria-label={`User ${user}. Choose another user`}>
      <Icon name="back" size={15} />
      <span className="clip">{user}</span>
    </button>
  );
}

/** Chooses a user: all that have memories, with their number, and a field for any other. */
export function UserPicker({ why }: { why: string }) {
  const entities = useEntities();
  const [, change] = useAddress();
  const [text, setText] = useState("");
  const users = (entities.data ?? []).filter(({ type }) => type === "user");
  const shown = users.filter(({ id }) => id.toLowerCase().includes(text.trim().toLowerCase()));
  const open = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim()) change({ user: text.trim() });
  };
  if (entities.isError) return <Failure error={entities.error} onRetry={() => void entities.refetch()} />;
  return (
    <section className="picker stack" aria-label="Users">
      <form className="row" onSubmit={open} role="search">
        <input type="search" value={text} onChange={(event) => setText(event.target.value)} placeholder="Find a user, or enter an id" aria-label="Find a user, or enter an id" />
        <button type="submit" className="button primary" disabled={!text.trim()}>
          Open
        </button>
      </form>
      <div className="card picker-list" style={{ height: shown.length ? `min(60vh, ${shown.length * ROW_PX + 2}px)` : "auto" }}>
        {entities.isPending && <Rows />}
        {entities.data && users.length === 0 && (
          <Empty title="No memories yet">
            <p>{why}</p>
          </Empty>
        )}
        {users.length > 0 && shown.length === 0 && <p className="faint pad">No user with memories has this in its id. Open it all the same to see its writes.</p>}
        {shown.length > 0 && (
          <VirtualList items={shown} idOf={(one) => one.id} label="Users with memories" rowPx={ROW_PX}>
            {(one) => <UserRow entity={one} onOpen={() => change({ user: one.id })} />}
          </VirtualList>
        )}
      </div>
      {entities.data && <Others entities={entities.data} />}
    </section>
  );
}

function UserRow({ entity, onOpen }: { entity: Entity; onOpen: () => void }) {
  return (
    <button type="button" className="list-row row between" onClick={onOpen}>
      <span className="clip strong">{entity.id}</span>
      <span className="soft nowrap">
        <Quantity value={entity.memories} one="memory" many="memories" />
      </span>
    </button>
  );
}

/** How many agents and runs have memories of their own. */
function Others({ entities }: { entities: readonly Entity[] }) {
  const count = (type: Entity["type"]) => entities.filter((one) => one.type === type).length;
  if (!count("agent") && !count("run")) return null;
  return (
    <p className="faint">
      Besides: <Quantity value={count("agent")} one="agent" /> and <Quantity value={count("run")} one="run" /> with memories of their own. Open a user to choose among its namespaces.
    </p>
  );
}
