export default function Decisions() {
  return (
    <div className="page">
      <h1>Decisions</h1>
    </div>
  );
}
