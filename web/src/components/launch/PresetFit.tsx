import { t } from "../../i18n";
import { withSlotNames } from "../../slots";

const tones = { now: "tone-ok", when_free: "tone-wait", never: "tone-bad", refused: "tone-bad" } as const;
const words = {
  now: "available now",
  when_free: "would be pending",
  never: "never possible",
  refused: "not allowed",
} as const;

interface Props {
  fit: { state: keyof typeof words; reason: string };
}

/** How soon a request could start for the viewer, and the reason when it could not, as the scheduler says. */
export function PresetFit({ fit }: Props) {
  return (
    <span>
      <span className={tones[fit.state]}>{t(words[fit.state])}</span>
      {fit.reason ? <span className="dim">: {withSlotNames(fit.reason)}</span> : null}
    </span>
  );
}
