import { Autocomplete, Button, Select, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useState } from "react";
import { gql, type TypedDocumentNode } from "urql";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { t } from "../../../i18n";
import { outcomeWord, readable, words } from "../../../words";
import { UserPick } from "../Pickers";
import { entities } from "./role";
import { anyFailure, results, type TrailFilter, wrongIn } from "./trail";

/** The actions come from the schema of the server. */
const ActionsQuery: TypedDocumentNode<
  { __schema: { mutationType: { fields: { name: string }[] } } },
  Record<string, never>
> = gql`
  query Actions { __schema { mutationType { fields { name } } } }
`;
/** The actions in the audit log that are not mutations. */
const others = ["authenticate", "actAs", "enterSession", "exportAudit"];

const spans = [
  { label: "Last hour", hours: 1 },
  { label: "Last day", hours: 24 },
  { label: "Last week", hours: 168 },
];

/** Formats a time for an input of type datetime-local. */
const local = (at: Date) => new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);

interface Props {
  filter: TrailFilter;
  /** E-mail addresses of the users in the filter, as far as they are known. */
  emails: Record<string, string>;
  onChange: (more: TrailFilter) => void;
  onClear: () => void;
}

export function TrailFilters({ filter, emails, onChange, onClear }: Props) {
  const { data } = useLiveQuery({ query: ActionsQuery, variables: {} });
  const actions = [...(data?.__schema.mutationType.fields ?? []).map((f) => f.name), ...others].sort();
  const wrong = wrongIn(filter);
  const errorOf = (key: keyof TrailFilter) => wrong[key] && t(wrong[key]);
  const since = (hours: number) => onChange({ from: local(new Date(Date.now() - hours * 3_600_000)), to: undefined });
  const person = (id: string | undefined) => (id ? { value: id, label: emails[id] ?? id } : null);
  return (
    <section className="panel pad stack" aria-label={t("Filter")}>
      <div className="filters">
        <TextInput
          className="span"
          type="datetime-local"
          label={t("From")}
          value={filter.from ?? ""}
          error={errorOf("from")}
          onChange={(e) => onChange({ from: e.currentTarget.value || undefined })}
        />
        <TextInput
          className="span"
          type="datetime-local"
          label={t("Until")}
          value={filter.to ?? ""}
          error={errorOf("to")}
          onChange={(e) => onChange({ to: e.currentTarget.value || undefined })}
        />
        <UserPick
          key={`actor ${filter.actor} ${emails[filter.actor ?? ""]}`}
          label={t("Actor")}
          placeholder={t("Anyone")}
          value={filter.actor ?? null}
          chosen={person(filter.actor)}
          error={errorOf("actor")}
          onChange={(id) => onChange({ actor: id ?? undefined })}
        />
        <UserPick
          key={`as ${filter.as} ${emails[filter.as ?? ""]}`}
          label={t("Acting as")}
          placeholder={t("Anyone")}
          value={filter.as ?? null}
          chosen={person(filter.as)}
          error={errorOf("as")}
          onChange={(id) => onChange({ as: id ?? undefined })}
        />
        <Typed label={t("Action")} value={filter.action} data={actions} onChange={(action) => onChange({ action })} />
        <Select
          label={t("Object")}
          placeholder={t("Any object")}
          clearable
          clearButtonProps={{ "aria-label": t("Clear") }}
          value={filter.entity ?? null}
          onChange={(entity) => onChange({ entity: entity ?? undefined })}
          data={entities.map((e) => ({ value: e.toLowerCase(), label: entityName(e) }))}
        />
        <Select
          label={t("Result")}
          placeholder={t("Any")}
          clearable
          clearButtonProps={{ "aria-label": t("Clear") }}
          value={filter.result ?? null}
          onChange={(result) => onChange({ result: result ?? undefined })}
          data={[
            { value: anyFailure, label: t("all except Done") },
            ...results.map((r) => ({ value: r, label: outcomeWord(r) })),
          ]}
        />
        <Typed label={t("Request ID")} value={filter.request} onChange={(request) => onChange({ request })} />
      </div>
      <div className="row">
        <div className="chips" role="group" aria-label={t("Time")}>
          {spans.map((s) => (
            <button key={s.label} type="button" className="chip" onClick={() => since(s.hours)}>
              {t(s.label)}
            </button>
          ))}
        </div>
        {Object.keys(filter).length > 0 ? (
          <Button className="push" variant="subtle" onClick={onClear}>
            {t("Clear filters")}
          </Button>
        ) : null}
      </div>
    </section>
  );
}

/** Names of kinds of objects in the audit log, which has more kinds than roles have. */
export const entityName = (entity: string) =>
  t((words.AccessEntity as Record<string, string>)[entity.toUpperCase()] ?? readable(entity));

/** A text field that takes effect when the user stops typing. */
function Typed({
  label,
  value,
  data,
  onChange,
}: {
  label: string;
  value: string | undefined;
  data?: string[];
  onChange: (value: string | undefined) => void;
}) {
  const [text, setText] = useState(value ?? "");
  useEffect(() => setText(value ?? ""), [value]);
  const listener = useDebouncedCallback((typed: string) => onChange(typed.trim() || undefined), 300);
  const type = (typed: string) => {
    setText(typed);
    listener(typed);
  };
  return data ? (
    <Autocomplete
      size="xs"
      label={label}
      placeholder={t("Any")}
      data={data}
      limit={12}
      value={text}
      onChange={type}
      clearable
      clearButtonProps={{ "aria-label": t("Clear") }}
    />
  ) : (
    <TextInput label={label} placeholder={t("Any")} value={text} onChange={(e) => type(e.currentTarget.value)} />
  );
}
