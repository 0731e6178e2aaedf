import { useLocalStorage } from "@mantine/hooks";
import { useNavigate } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { byField } from "../../api/errors";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { type LaunchWish, launchedHere } from "../../hooks/useLaunch";
import { useViewer } from "../../hooks/useViewer";
import { recentImages } from "./recent";
import { check, inputOf, sizeOf, usual, type Wish } from "./request";
import { useOffer } from "./useOffer";

const CreateSession = graphql(`
  mutation CreateSession($input: CreateSessionInput!) {
    createSession(input: $input) { session { id version name status } }
  }
`);

const fields = [
  "image",
  "command",
  "name",
  "slots.cpu",
  "slots.mem",
  "slots",
  "diskBytes",
  "mounts",
  "project",
  "resourceGroup",
  "startsAt",
  "dependsOn",
  "lifetime",
  "priority",
  "preemptible",
  "agents",
  "strictAgents",
  "sessionGroup",
];

/** The state of the launch sheet: the request, what it can choose from, what is wrong by field, and how it is sent. */
export function useLaunchForm(begin: LaunchWish, onClose: () => void) {
  const viewer = useViewer();
  const navigate = useNavigate();
  const { run, busy, failure } = useAction(CreateSession);
  const [recent, setRecent] = useLocalStorage(recentImages);
  const [tried, setTried] = useState(false);
  const key = useRef(crypto.randomUUID());
  const [wish, setWish] = useState<Wish>({
    image: begin.image ?? "",
    mode: begin.command ? "BATCH" : "INTERACTIVE",
    command: begin.command ?? "",
    name: "",
    ...sizeOf(begin.slots),
    preset: null,
    disk: "",
    folders: begin.folder ? [{ id: begin.folder, readOnly: begin.readOnly ?? false }] : [],
    project: viewer.projects[0]?.id ?? null,
    group: viewer.resourceGroups[0]?.id ?? null,
    ...usual,
  });
  const set = (more: Partial<Wish>) => {
    // A changed request is another request, not a repetition.
    key.current = crypto.randomUUID();
    setWish((w) => ({ ...w, ...more }));
  };
  const offer = useOffer(recent, wish);
  const full: Wish = {
    ...wish,
    image: wish.image || (offer.images[0]?.reference ?? ""),
    slot: wish.slot || (offer.slots[0] ?? ""),
  };
  const { field: refused, rest } = byField(failure, fields);
  const wrong = { ...refused, ...(tried ? check(full) : {}) };

  async function submit(event: React.FormEvent) {
    event.preventDefault();
    setTried(true);
    if (Object.keys(check(full)).length > 0) return;
    const done = await run({ input: inputOf(full, key.current) });
    if (!done) return;
    setRecent([full.image, ...recent.filter((r) => r !== full.image)].slice(0, 8));
    launchedHere.add(done.createSession.session.id);
    onClose();
    await navigate({ to: "/sessions/$id", params: { id: done.createSession.session.id } });
  }
  return { wish: full, set, offer, wrong, rest, busy, submit };
}
