import { useAddress } from "../../address";
import { UserPicker } from "../../shared";
import { Feed } from "./Feed";
import "./decisions.css";

export default function Decisions() {
  const [{ user }] = useAddress();
  if (user) return <Feed key={user} user={user} />;
  return (
    <div className="page">
      <div className="page-head">
        <h1>Decisions</h1>
      </div>
      <UserPicker why="Enter a user's id to see its writes, the failed ones too. A chat with memory on makes the first." />
    </div>
  );
}
