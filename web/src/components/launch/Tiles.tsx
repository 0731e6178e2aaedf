import { useEffect, useRef } from "react";

export interface Tile {
  key: string;
  title: string;
  note?: React.ReactNode;
  /** Disabled; the note contains the reason. */
  off?: boolean;
}

interface Props {
  label: string;
  /** Whether the group takes the focus when the form opens. */
  first?: boolean;
  /** Two tiles in a row, for notes that are sentences. */
  wide?: boolean;
  tiles: Tile[];
  chosen: string | null;
  onChoose: (key: string) => void;
  error?: string;
}

/** Selects one of several tiles. The arrow keys work as in a group of radio buttons. */
export function Tiles({ label, first, wide, tiles, chosen, onChoose, error }: Props) {
  const group = useRef<HTMLDivElement>(null);
  const at = tiles.findIndex((t) => t.key === chosen);
  const ready = tiles.length > 0;
  useEffect(() => {
    if (first && ready) group.current?.querySelector<HTMLButtonElement>('[tabindex="0"]')?.focus();
  }, [first, ready]);
  function press(event: React.KeyboardEvent<HTMLElement>) {
    // Enter on the selected tile submits the form.
    const on = (event.target as HTMLElement).closest('[aria-checked="true"]');
    if (event.key === "Enter" && on) {
      event.preventDefault();
      on.closest("form")?.requestSubmit();
      return;
    }
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by || tiles.length === 0) return;
    event.preventDefault();
    const open = tiles.flatMap((tile, i) => (tile.off ? [] : [i]));
    if (open.length === 0) return;
    const place = open.indexOf(at);
    const next = open[place < 0 ? 0 : (place + by + open.length) % open.length]!;
    onChoose(tiles[next]!.key);
    group.current?.querySelectorAll<HTMLButtonElement>("button")[next]?.focus();
  }
  return (
    <fieldset className="legendless">
      <legend>{label}</legend>
      <div className={wide ? "tiles wide" : "tiles"} ref={group} role="radiogroup" aria-label={label} onKeyDown={press}>
        {tiles.map((tile, i) => (
          <button
            key={tile.key}
            type="button"
            role="radio"
            className="tile"
            aria-checked={tile.key === chosen}
            aria-disabled={tile.off || undefined}
            tabIndex={i === Math.max(0, at) ? 0 : -1}
            onClick={() => (tile.off ? undefined : onChoose(tile.key))}
          >
            <b className="clip">{tile.title}</b>
            {tile.note}
          </button>
        ))}
      </div>
      {error ? (
        <p className="bad" role="alert" style={{ marginTop: 4 }}>
          {error}
        </p>
      ) : null}
    </fieldset>
  );
}
