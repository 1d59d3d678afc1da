export default function Memories() {
  return (
    <div className="page">
      <h1>Memories</h1>
    </div>
  );
}
