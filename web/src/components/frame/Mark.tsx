/** The logo: a quay with one occupied berth. */
export function Mark({ size = 22 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 24 24" fill="none" aria-hidden="true">
      <path d="M3 4v11a6 6 0 0 0 6 6h6a6 6 0 0 0 6-6V4" stroke="currentColor" strokeWidth="2.4" strokeLinecap="round" />
      <rect x="7.6" y="8.6" width="8.8" height="3" rx="1" fill="currentColor" opacity="0.45" />
      <rect x="7.6" y="12.8" width="8.8" height="3.6" rx="1" fill="currentColor" />
    </svg>
  );
}
