import { Button } from "@mantine/core";
import { FitAddon } from "@xterm/addon-fit";
import { Terminal as Xterm } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { useEffect, useRef, useState } from "react";
import { backoff } from "../../api/live";
import { t } from "../../i18n";
import { Empty } from "../Note";
import { address, decode, resize } from "./terminal";

type State =
  | { is: "connecting" | "open" | "lost" }
  | { is: "ended"; code: number }
  | { is: "refused"; message: string };

const theme = {
  background: "#0b1110",
  foreground: "#dfe8e5",
  cursor: "#3cc7b4",
  cursorAccent: "#0b1110",
  selectionBackground: "#23534c",
};

/** The number of connection attempts before the user is asked. */
const maxTries = 6;

export default function Terminal({ session, status }: { session: string; status: string }) {
  const [round, setRound] = useState(0);
  if (status !== "RUNNING") {
    const coming = ["PENDING", "SCHEDULED", "PREPARING", "PREPARED", "CREATING"].includes(status);
    return (
      <div className="panel">
        <Empty title={coming ? t("The terminal opens when the session runs") : t("The session has ended")} />
      </div>
    );
  }
  return <Shell key={round} session={session} onAgain={() => setRound(round + 1)} />;
}

function Shell({ session, onAgain }: { session: string; onAgain: () => void }) {
  const place = useRef<HTMLDivElement>(null);
  const [state, setState] = useState<State>({ is: "connecting" });

  useEffect(() => {
    const term = new Xterm({
      theme,
      fontFamily: 'ui-monospace, "SF Mono", "Cascadia Mono", "Noto Sans Mono", "DejaVu Sans Mono", monospace',
      fontSize: 13,
      cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
      scrollback: 10_000,
      screenReaderMode: false,
    });
    const fit = new FitAddon();
    term.loadAddon(fit);
    term.open(place.current!);
    fit.fit();

    let socket: WebSocket | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let tries = 0;
    let over = false;

    function connect() {
      const ws = new WebSocket(address(location, session, term.cols, term.rows));
      ws.binaryType = "arraybuffer";
      socket = ws;
      ws.onmessage = (event: MessageEvent<ArrayBuffer | string>) => {
        const frame = decode(event.data);
        if (frame.type === "output") term.write(frame.data);
        else if (frame.type === "started") {
          if (tries > 0) term.write(`\r\n\x1b[2m${t("Reconnected. This is a new shell.")}\x1b[0m\r\n`);
          tries = 0;
          setState({ is: "open" });
          ws.send(resize(term.cols, term.rows));
        } else if (frame.type === "exit") {
          over = true;
          setState({ is: "ended", code: frame.code });
        } else if (frame.type === "error") {
          over = true;
          setState({ is: "refused", message: `${frame.message} (${frame.code})` });
        }
      };
      ws.onclose = () => {
        if (over) return;
        if (tries >= maxTries) {
          setState({ is: "refused", message: t("The connection failed.") });
          return;
        }
        setState({ is: "lost" });
        timer = setTimeout(connect, backoff(tries++));
      };
    }
    connect();

    const bytes = new TextEncoder();
    const send = (data: Uint8Array<ArrayBuffer>) => {
      if (socket?.readyState === WebSocket.OPEN) socket.send(data);
    };
    const inputs = [
      term.onData((text) => send(bytes.encode(text))),
      term.onBinary((text) => send(Uint8Array.from(text, (c) => c.charCodeAt(0)))),
      term.onResize(({ cols, rows }) => {
        if (socket?.readyState === WebSocket.OPEN) socket.send(resize(cols, rows));
      }),
    ];
    const watch = new ResizeObserver(() => fit.fit());
    watch.observe(place.current!);
    term.focus();
    return () => {
      over = true;
      clearTimeout(timer);
      watch.disconnect();
      for (const input of inputs) input.dispose();
      socket?.close();
      term.dispose();
    };
  }, [session]);

  return (
    <div className="stack small">
      <div className="terminal-box" data-terminal={state.is}>
        <div ref={place} />
      </div>
      <div className="row" role="status">
        <span className="dim">
          {state.is === "connecting" ? t("Connecting…") : null}
          {state.is === "open" ? t("Connected. Tab and Ctrl keys go to the shell.") : null}
          {state.is === "lost" ? t("Connection lost. Reconnecting…") : null}
          {state.is === "ended" ? t("The shell exited with code {{code}}.", { code: state.code }) : null}
          {state.is === "refused" ? state.message : null}
        </span>
        {state.is === "ended" || state.is === "refused" ? (
          <Button variant="default" onClick={onAgain}>
            {t("Open a new shell")}
          </Button>
        ) : null}
      </div>
    </div>
  );
}
