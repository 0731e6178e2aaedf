/**
 * Icons for slots, by the icon name from the plugin. Each is a kind of chip with its own outline and letters. They are
 * not logos of vendors.
 */
const kinds: Record<string, { shape: "gpu" | "npu" | "tpu" | "ipu" | "lpu" | "board" | "mock"; letters: string }> = {
  nvidia: { shape: "gpu", letters: "N" },
  rocm: { shape: "gpu", letters: "A" },
  xpu: { shape: "gpu", letters: "X" },
  gaudi: { shape: "npu", letters: "G" },
  furiosa: { shape: "npu", letters: "F" },
  rebel: { shape: "npu", letters: "R" },
  npu_generic: { shape: "npu", letters: "" },
  tpu: { shape: "tpu", letters: "T" },
  ipu: { shape: "ipu", letters: "I" },
  lpu: { shape: "lpu", letters: "L" },
  tenstorrent: { shape: "board", letters: "T" },
  mock: { shape: "mock", letters: "M" },
};

const pins = (xs: number[]) => xs.map((x) => `M${x} 2v3M${x} 19v3M2 ${x}h3M19 ${x}h3`).join("");

const outlines = {
  // A card with its connector below.
  gpu: <path d="M2.5 5.5h19v11h-19zM6 16.5v3h9v-3" />,
  // A chip with pins on all sides.
  npu: <path d={`M5 5h14v14H5z${pins([9, 15])}`} />,
  // A chip with its corners cut.
  tpu: <path d="M8 3h8l5 5v8l-5 5H8l-5-5V8z" />,
  // A round die on its square.
  ipu: <path d="M3.5 3.5h17v17h-17zM12 5.6a6.4 6.4 0 1 1 0 12.8 6.4 6.4 0 0 1 0-12.8z" />,
  // Lanes side by side.
  lpu: <path d="M3 5h18v14H3zM3 8.2h18M3 15.8h18" />,
  // A board with two chips.
  board: <path d="M2.5 4.5h19v15h-19zM2.5 8h2.6M2.5 12h2.6M2.5 16h2.6M18.9 8h2.6M18.9 12h2.6M18.9 16h2.6" />,
  mock: <path d="M4 4h16v16H4z" strokeDasharray="3 2.2" />,
};

export function Glyph({ icon, size = 22 }: { icon: string; size?: number }) {
  const { shape, letters } = kinds[icon] ?? { shape: "npu" as const, letters: "" };
  return (
    <svg className="glyph" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" data-icon={icon}>
      <g fill="none" stroke="currentColor" strokeWidth="1.5" strokeLinejoin="round" strokeLinecap="round">
        {outlines[shape]}
      </g>
      {letters ? (
        <text
          x="12"
          y={shape === "gpu" ? 14.2 : 15.4}
          textAnchor="middle"
          fontSize="9"
          fontWeight="700"
          fill="currentColor"
        >
          {letters}
        </text>
      ) : (
        <rect x="9" y="9" width="6" height="6" rx="1" fill="currentColor" />
      )}
    </svg>
  );
}
