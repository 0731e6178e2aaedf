import type { Failure } from "../../api/errors";
import type { Found } from "../../api/incoming";
import { incoming } from "../../api/transfer";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";

/** Milliseconds after which a toast reports that the upload is being prepared. */
const toastDelay = 800;

/** Uploads files into a directory of a folder, and shows a toast for results that the upload tray does not show. */
export async function sendFiles(folder: { id: string; name: string }, directory: string, files: Found[]) {
  const slow = setTimeout(() => toast({ text: t("Checking which files already exist…") }), toastDelay);
  try {
    const unchanged = await incoming.send(folder.id, directory, files, folder.name);
    if (unchanged > 0)
      toast({ text: t("{{count}} files already exist unchanged and are not uploaded again.", { count: unchanged }) });
  } catch (failure) {
    toast({ failure: failure as Failure });
  } finally {
    clearTimeout(slow);
  }
}
