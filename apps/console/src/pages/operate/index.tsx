export default function Operate() {
  return (
    <div className="page">
      <h1>Operate</h1>
    </div>
  );
}
