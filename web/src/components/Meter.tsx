interface Props {
  label: string;
  used: number | null;
  limit: number;
  /** From which part on it is shown as full. */
  full?: number;
}

/** How much of a limit is used. A limit of nothing is full. */
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
