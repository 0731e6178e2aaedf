interface Props {
  label: string;
  used: number | null;
  limit: number;
  /** The fraction from which the meter is shown as full. */
  full?: number;
}

/** Shows how much of a limit is used. A limit of 0 is shown as full. */
export function Meter({ label, used, limit, full = 1 }: Props) {
  const part = limit === 0 ? 1 : Math.min(1, (used ?? 0) / limit);
  return (
    <div
      className="meter"
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={limit}
      aria-valuenow={Math.min(used ?? 0, limit)}
    >
      <i className={part >= full ? "full" : ""} style={{ width: `${part * 100}%` }} />
    </div>
  );
}
