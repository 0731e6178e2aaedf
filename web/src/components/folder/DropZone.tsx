import { type ReactNode, useState } from "react";
import type { Found } from "../../api/incoming";
import { toast } from "../../hooks/useToasts";
import { dropped } from "./dropped";

interface Props {
  enabled: boolean;
  onFiles: (files: Found[]) => void;
  children: ReactNode;
}

/** Accepts files and directories that are dropped onto its children. */
export function DropZone({ enabled, onFiles, children }: Props) {
  const [over, setOver] = useState(false);
  return (
    <div
      className={`drop-zone${over ? " over" : ""}`}
      onDragOver={(e) => {
        if (!enabled) return;
        e.preventDefault();
        setOver(true);
      }}
      onDragLeave={(e) => {
        if (!e.currentTarget.contains(e.relatedTarget as Node | null)) setOver(false);
      }}
      onDrop={(e) => {
        if (!enabled) return;
        e.preventDefault();
        setOver(false);
        dropped(e.dataTransfer).then(onFiles, (error) =>
          toast({ failure: { code: "INVALID_ARGUMENT", message: String(error) } }),
        );
      }}
    >
      {children}
    </div>
  );
}
