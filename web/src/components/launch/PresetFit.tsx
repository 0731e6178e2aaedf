import { t } from "../../i18n";
import { withSlotNames } from "../../slots";

const tones = { NOW: "tone-ok", WHEN_FREE: "tone-wait", NEVER: "tone-bad", REFUSED: "tone-bad" } as const;
const words = {
  NOW: "available now",
  WHEN_FREE: "would be pending",
  NEVER: "never possible",
  REFUSED: "not allowed",
} as const;

interface Props {
  fit: { state: keyof typeof words; reason: string };
}

/** Shows when a request could start for the viewer, or the scheduler's reason why it could not. */
export function PresetFit({ fit }: Props) {
  return (
    <span>
      <span className={tones[fit.state]}>{t(words[fit.state])}</span>
      {fit.reason ? <span className="dim">: {withSlotNames(fit.reason)}</span> : null}
    </span>
  );
}
