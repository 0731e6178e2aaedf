import { Button } from "@mantine/core";
import { useQuery } from "urql";
import { graphql } from "../../api/graphql";
import { t } from "../../i18n";
import { bytes } from "../format";
import type { LaunchDraft } from "./request";

const SizeAdviceQuery = graphql(`
  query SizeAdvice($image: ID!, $name: String) {
    sizeAdvice(image: $image, name: $name) { session { id name } asked suggested }
  }
`);

const gib = 2 ** 30;

interface Props {
  /** Of the chosen image; without it there is no hint. */
  image: string | undefined;
  draft: LaunchDraft;
  onUse: (size: { cpu: number; mem: number }) => void;
}

/** Offers the size that an earlier session with the image would have needed. */
export function SizeHint({ image, draft, onUse }: Props) {
  const [{ data }] = useQuery({
    query: SizeAdviceQuery,
    variables: { image: image ?? "", name: draft.name || null },
    pause: !image,
  });
  const advice = data?.sizeAdvice;
  const suggested = advice?.suggested as Record<string, string> | undefined;
  const cpu = Number(suggested?.cpu);
  const mem = Number(suggested?.mem) / gib;
  if (!advice || !Number.isFinite(cpu) || !Number.isFinite(mem) || (cpu === draft.cpu && mem === draft.mem))
    return null;
  return (
    <p className="dim row">
      <span>
        {t("Session {{name}} with this image would have needed {{cpu}} CPU and {{mem}} of memory.", {
          name: advice.session.name,
          cpu,
          mem: bytes(mem * gib),
        })}
      </span>
      <Button size="compact-xs" variant="default" onClick={() => onUse({ cpu, mem })}>
        {t("Use this size")}
      </Button>
    </p>
  );
}
