import { Link } from "@tanstack/react-router";
import { useAddress } from "../../address";
import { History } from "./History";
import { NewRead } from "./NewRead";
import { ReadView } from "./ReadView";
import "./read.css";

export default function Read() {
  const [{ read, user }] = useAddress();
  if (read) return <ReadView key={read} readId={read} />;
  return (
    <div className="page">
      <div className="page-head">
        <h1>Read a document</h1>
        <Link to="/read" hash="history" search={user ? { user } : {}} className="button quiet small only-narrow">
          Earlier reads
        </Link>
      </div>
      <div className="read-start">
        <NewRead />
        <History />
      </div>
    </div>
  );
}
