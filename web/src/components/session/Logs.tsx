import { Button, Checkbox, TextInput } from "@mantine/core";
import { useThrottledValue } from "@mantine/hooks";
import { useEffect, useMemo, useRef, useState } from "react";
import { useSubscription } from "urql";
import { fromGraphQL } from "../../api/errors";
import { graphql, type ResultOf, type VariablesOf } from "../../api/graphql";
import { t } from "../../i18n";
import { Empty, FailureNote } from "../Note";
import { append, emptyLog, keepLines, type LogBuffer, visible } from "./logbuffer";

const KernelLogs = graphql(`
  subscription KernelLogs($kernel: ID!, $tailLines: Int) {
    kernelLogs(kernel: $kernel, follow: true, tailLines: $tailLines) { text offset nextOffset }
  }
`);

/** The most lines that are rendered. Search and the download cover the others. */
const maxRendered = 3000;

interface Props {
  session: string;
  name: string;
  kernel: string | null;
  begun: boolean;
}

export function Logs({ session, name, kernel, begun }: Props) {
  const [follow, setFollow] = useState(true);
  const [wrap, setWrap] = useState(false);
  const [find, setFind] = useState("");
  const box = useRef<HTMLPreElement>(null);
  const [{ data, error }] = useSubscription<ResultOf<typeof KernelLogs>, LogBuffer, VariablesOf<typeof KernelLogs>>(
    { query: KernelLogs, variables: { kernel: kernel ?? "", tailLines: keepLines }, pause: !kernel || !begun },
    (log = emptyLog, message) => append(log, message.kernelLogs),
  );
  const log = useThrottledValue(data ?? emptyLog, 100);
  const shown = useMemo(() => {
    const want = find.toLowerCase();
    const lines = log.lines.map((raw, i) => ({ number: log.first + i, text: visible(raw) }));
    if (lines.at(-1)?.text === "") lines.pop();
    return want ? lines.filter((l) => l.text.toLowerCase().includes(want)) : lines;
  }, [log, find]);

  useEffect(() => {
    if (follow && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [follow, shown]);

  if (!begun || !kernel)
    return <Empty title={t("No output before the session runs")}>{t("Lines appear here as they are written.")}</Empty>;
  return (
    <div className="stack small">
      <div className="row">
        <TextInput
          data-filter
          placeholder={t("Search the log  /")}
          aria-label={t("Search the log")}
          value={find}
          w={240}
          onChange={(e) => setFind(e.currentTarget.value)}
        />
        {find ? (
          <span className="dim" role="status">
            {t("{{count}} lines match", { count: shown.length })}
          </span>
        ) : null}
        <div className="push row">
          <Checkbox label={t("Follow")} checked={follow} onChange={(e) => setFollow(e.currentTarget.checked)} />
          <Checkbox label={t("Wrap")} checked={wrap} onChange={(e) => setWrap(e.currentTarget.checked)} />
          <Button component="a" variant="default" href={`/sessions/${session}/log`} download={`${name}.log`}>
            {t("Download")}
          </Button>
        </div>
      </div>
      {error ? <FailureNote failure={fromGraphQL(error)} what={t("The log could not be loaded")} /> : null}
      <pre
        ref={box}
        className={`logs${wrap ? " wrap" : ""}`}
        tabIndex={0}
        role="log"
        aria-label={t("Log of {{name}}", { name })}
        aria-live="off"
        onWheel={(e) => {
          if (e.deltaY < 0) setFollow(false);
        }}
      >
        {shown.length === 0 ? <span className="line dim">{find ? "" : t("No output yet.")}</span> : null}
        {shown.slice(-maxRendered).map((l) => (
          <div key={l.number} className="line">
            {find ? <Marked text={l.text} find={find} /> : l.text || " "}
          </div>
        ))}
      </pre>
    </div>
  );
}

function Marked({ text, find }: { text: string; find: string }) {
  const at = text.toLowerCase().indexOf(find.toLowerCase());
  if (at < 0) return <>{text}</>;
  return (
    <>
      {text.slice(0, at)}
      <mark>{text.slice(at, at + find.length)}</mark>
      {text.slice(at + find.length)}
    </>
  );
}
