import { word } from "../../words";
import { type Tone, Toned } from "../Status";
import type { App } from "./app";

const tones: Record<App["status"], Tone> = { STOPPED: "done", STARTING: "busy", RUNNING: "ok", FAILED: "bad" };

export function AppStatus({ status }: { status: App["status"] }) {
  return (
    <Toned tone={tones[status]} status={status}>
      {word("AppStatus", status)}
    </Toned>
  );
}
