import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "urql";
import { graphql, type VariablesOf } from "../../api/graphql";
import { t } from "../../i18n";
import { PresetFit } from "./PresetFit";
import { type LaunchDraft, presetFit, sizeInput, sizes } from "./request";
import { Tiles } from "./Tiles";

const SizesQuery = graphql(`
  query Sizes($s: CreateSessionInput!, $m: CreateSessionInput!, $l: CreateSessionInput!) {
    S: dryRun(input: $s) { verdict refusals { message } }
    M: dryRun(input: $m) { verdict refusals { message } }
    L: dryRun(input: $l) { verdict refusals { message } }
  }
`);

interface Props {
  draft: LaunchDraft;
  onChoose: (size: { cpu: number; mem: number }) => void;
}

/**
 * Selects a common size. The server reports for each size whether it would start, so that the tiles and the preview
 * agree.
 */
export function Sizes({ draft, onChoose }: Props) {
  const [s, m, l] = sizes.map((size) => sizeInput(draft, size));
  const [debounced] = useDebouncedValue(JSON.stringify({ s, m, l }), 400);
  const variables = JSON.parse(debounced) as VariablesOf<typeof SizesQuery>;
  const [{ data }] = useQuery({
    query: SizesQuery,
    variables,
    pause: !variables.s.image,
    requestPolicy: "network-only",
  });
  const chosen = draft.preset ? undefined : sizes.find((size) => size.cpu === draft.cpu && size.mem === draft.mem);
  return (
    <Tiles
      label={t("Size")}
      chosen={chosen?.key ?? null}
      onChoose={(key) => {
        const { cpu, mem } = sizes.find((size) => size.key === key)!;
        onChoose({ cpu, mem });
      }}
      tiles={sizes.map(({ key, cpu, mem }) => {
        const fit = data ? presetFit(data[key]) : null;
        return {
          key,
          title: `${key} · ${cpu} CPU · ${mem} GiB`,
          off: fit?.state === "NEVER",
          note: fit ? <PresetFit fit={fit} /> : <span className="dim">…</span>,
        };
      })}
    />
  );
}
