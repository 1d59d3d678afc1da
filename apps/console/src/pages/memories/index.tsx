import { useAddress } from "../../address";
import { UserPicker } from "../../shared";
import { Explorer } from "./Explorer";
import "./memories.css";

export default function Memories() {
  const [{ user }] = useAddress();
  if (user) return <Explorer key={user} user={user} />;
  return (
    <div className="page">
      <div className="page-head">
        <h1>Memories</h1>
      </div>
      <UserPicker why="Hold a chat with memory on, or add a memory by the API; its user then appears here." />
    </div>
  );
}
