export default function Read() {
  return (
    <div className="page">
      <h1>Read</h1>
    </div>
  );
}
