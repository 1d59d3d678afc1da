import { Link } from "@tanstack/react-router";
import { Empty, Failure } from "../shared";

export function PageError({ error, reset }: { error: unknown; reset: () => void }) {
  return <Failure error={error} onRetry={reset} />;
}

export function NotFound() {
  return (
    <Empty title="There is no such page">
      <p>The address may be misspelt.</p>
      <Link to="/memories" className="button">
        Open Memories
      </Link>
    </Empty>
  );
}
